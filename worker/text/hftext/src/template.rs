//! Chat templates, rendered as Transformers renders them: Jinja2's immutable sandbox with
//! `trim_blocks` and `lstrip_blocks`.

use crate::generation::{self, Marks};
use crate::python_format::str_of;
use crate::{filters, python_methods, Failure, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, Output, State, UndefinedBehavior};
use std::cell::Cell;

const NAME: &str = "chat_template";

/// Bounds what a template may do: so many instructions, or 64 times as many bytes of data.
const FUEL: u64 = 16_000_000;

const RECURSION_LIMIT: usize = 200;

thread_local! {
    static MARKS: Cell<Marks> = const { Cell::new(Marks { open: '\u{e000}', close: '\u{e001}' }) };
}

/// A compiled template.
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    has_generation: bool,
}

/// What a rendering gave.
#[derive(Debug, PartialEq)]
pub struct Rendering {
    pub text: String,
    /// Byte ranges of what was inside of generation blocks.
    pub spans: Vec<(usize, usize)>,
}

impl ChatTemplate {
    /// Compiles a template.
    pub fn new(source: &str) -> Result<ChatTemplate> {
        // Jinja2 does so with the whole source, string literals included.
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let (rewritten, has_generation) = generation::rewrite(&source);
        let mut environment = environment()?;
        environment
            .add_template_owned(NAME, rewritten)
            .map_err(|error| Failure::Error(describe(&error)))?;
        Ok(ChatTemplate {
            environment,
            source,
            has_generation,
        })
    }

    /// True if the template marks what the assistant generates.
    pub fn has_generation(&self) -> bool {
        self.has_generation
    }

    /// Renders with the variables of a JSON object. `unix_seconds`: what `strftime_now` shows, or
    /// negative for the clock.
    pub fn render(&self, variables_json: &str, unix_seconds: i64) -> Result<Rendering> {
        let variables: serde_json::Value = serde_json::from_str(variables_json)?;
        let marks = Marks::absent_from(&[&self.source, &variables.to_string()])
            .ok_or_else(|| Failure::Error("no private-use character is left".into()))?;
        MARKS.set(marks);
        filters::begin_rendering(unix_seconds);
        let template = self.environment.get_template(NAME)?;
        let text = template.render(to_value(variables)).map_err(|error| {
            filters::take_raised().map_or_else(|| Failure::Error(describe(&error)), Failure::Raised)
        })?;
        let (text, spans) = marks.strip(&text);
        Ok(Rendering { text, spans })
    }
}

fn environment() -> Result<Environment<'static>> {
    let mut env = Environment::new();
    env.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(false)
            .build()?,
    );
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_recursion_limit(RECURSION_LIMIT);
    env.set_fuel(Some(FUEL));
    env.set_unknown_method_callback(python_methods::call);
    env.set_formatter(format_value);
    filters::install(&mut env);
    env.add_function(generation::FUNCTION, generation_block);
    Ok(env)
}

fn format_value(
    out: &mut Output,
    state: &mut State,
    value: &Value,
) -> std::result::Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(()),
        ValueKind::Number | ValueKind::Seq | ValueKind::Map => {
            out.write_str(&str_of(value)).map_err(Error::from)
        }
        _ => minijinja::escape_formatter(out, state, value),
    }
}

fn generation_block(state: &mut State, kwargs: Kwargs) -> std::result::Result<Value, Error> {
    let caller: Value = kwargs.get("caller")?;
    let body = caller.call(state, &[])?;
    let marks = MARKS.get();
    Ok(Value::from(format!("{}{body}{}", marks.open, marks.close)))
}

/// Keeps the order of keys.
fn to_value(json: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(flag),
        Json::Number(number) => number
            .as_i64()
            .map(Value::from)
            .or_else(|| number.as_u64().map(Value::from))
            .unwrap_or_else(|| Value::from(number.as_f64().unwrap_or(f64::NAN))),
        Json::String(text) => Value::from(text),
        Json::Array(items) => Value::from(items.into_iter().map(to_value).collect::<Vec<_>>()),
        Json::Object(entries) => Value::from_pairs(
            entries
                .into_iter()
                .map(|(key, value)| (Value::from(key), to_value(value))),
        ),
    }
}

/// The error with its line and its causes, on one line.
fn describe(error: &Error) -> String {
    let mut text = error.kind().to_string();
    if let Some(detail) = error.detail() {
        text += &format!(": {detail}");
    }
    if let Some(line) = error.line() {
        text += &format!(" (line {line})");
    }
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, variables: &str) -> Result<Rendering> {
        ChatTemplate::new(source)?.render(variables, 0)
    }

    fn text_of(source: &str) -> String {
        render(
            source,
            r#"{"d": {"b": 1, "a": "<'ä'>"}, "f": 1e-7, "none": null}"#,
        )
        .unwrap_or_else(|error| panic!("{source}: {error:?}"))
        .text
    }

    fn error_of(source: &str) -> String {
        match render(source, "{}") {
            Err(Failure::Error(text)) => text,
            other => panic!("{source}: {other:?}"),
        }
    }

    #[test]
    fn prints_values_as_python_does() {
        for (source, text) in [
            ("{{ d | tojson }}", r#"{"b": 1, "a": "<'ä'>"}"#),
            (
                "{{ d | tojson(indent=1) }}",
                "{\n \"b\": 1,\n \"a\": \"<'ä'>\"\n}",
            ),
            ("{{ d }}", r#"{'b': 1, 'a': "<'ä'>"}"#),
            (
                "{{ f }} {{ 3.0 }} {{ none }} {{ missing }}",
                "1e-07 3.0 None ",
            ),
            ("{{ 'a,b,c'.split(',', maxsplit=1) }}", "['a', 'b,c']"),
            ("{{ ' a  b c '.rsplit(None, 1) }}", "[' a  b', 'c']"),
            ("{{ 'a-b-c'.rpartition('-') }}", "('a-b', '-', 'c')"),
            (
                "{{ 'abc'.startswith('b', 1) }} {{ 'abc'.endswith(('x', 'c')) }}",
                "True True",
            ),
            ("{{ \"don't\".title() }} {{ '-7'.zfill(4) }}", "Don'T -007"),
            ("{{ 'a\\r\\nb\\x0bc'.splitlines() }}", "['a', 'b', 'c']"),
            ("{{ '\\x1c a '.strip() }}|{{ 'xax'.strip('x') }}", "a|a"),
            (
                "{{ '12' | int + 1 }} {{ 'x' | int(7) }} {{ '1.5' | float }}",
                "13 7 1.5",
            ),
            ("{{ none is iterable }} {{ 'x' is sequence }}", "False True"),
            ("{{ strftime_now('%Y') }}", "1970"),
        ] {
            assert_eq!(text_of(source), text, "{source}");
        }
    }

    #[test]
    fn reports_what_the_assistant_generates() {
        let rendering = render(
            "{% for m in [1, 2] %}\n  {% generation %}\nä{{ m }}{% endgeneration %}\n;{% endfor %}",
            "{}",
        );
        let expected = Rendering {
            text: "ä1;ä2;".into(),
            spans: vec![(0, 3), (4, 7)],
        };
        assert_eq!(rendering, Ok(expected));
    }

    #[test]
    fn generation_blocks_assign_to_namespaces_around_them() {
        let rendering = render(
            "{% set ns = namespace(a=1) %}{% generation %}{% set ns.a = 2 %}{% endgeneration %}\
             {{ ns.a }}",
            "{}",
        );
        assert_eq!(rendering.unwrap().text, "2");
    }

    #[test]
    fn raise_exception_is_told_apart() {
        let result = render("{{ raise_exception('roles must alternate') }}", "{}");
        assert_eq!(result, Err(Failure::Raised("roles must alternate".into())));
        assert!(matches!(
            render("{{ 1 / 0 }}", "{}"),
            Err(Failure::Error(_))
        ));
    }

    #[test]
    fn errors_name_the_line() {
        assert!(error_of("a\n{% if %}").contains("(line 2)"));
        assert!(error_of("a\n\n{{ nothing.at.all }}").contains("(line 3)"));
        assert!(error_of("{{ [].append(1) }}").contains("unsafe"));
        assert!(error_of("{{ missing | tojson }}").contains("not JSON serializable"));
    }

    #[test]
    fn hostile_templates_end_with_an_error() {
        for source in [
            "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "{{ range(10 ** 9) | list }}",
            "{{ 'a' * 10 ** 15 }}",
            "{% set n = namespace(s='aaaa') %}\
             {% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
            "{{ 'a'.center(10 ** 12) }}",
            "{{ [1] | tojson(indent=10 ** 9) }}",
        ] {
            error_of(source);
        }
        let deep = "(".repeat(100_000);
        assert!(ChatTemplate::new(&format!("{{{{ {deep}")).is_err());
    }
}
