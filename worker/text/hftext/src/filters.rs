//! Filters, tests and functions that Transformers' templates have and the engine lacks, or where
//! the engine differs from Jinja2.

use crate::python_format::{str_of, JsonWriter};
use crate::python_methods::is_space;
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use std::cell::{Cell, RefCell};
use std::ffi::CString;

thread_local! {
    static UNIX_SECONDS: Cell<i64> = const { Cell::new(-1) };
    static RAISED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Sets what one rendering on this thread sees: the time (negative: the clock's).
pub fn begin_rendering(unix_seconds: i64) {
    UNIX_SECONDS.set(unix_seconds);
    RAISED.take();
}

/// The text of `raise_exception` if the template called it since `begin_rendering`.
pub fn take_raised() -> Option<String> {
    RAISED.take()
}

/// Adds everything of this module.
pub fn install(env: &mut Environment<'static>) {
    env.add_filter("tojson", to_json);
    env.add_filter("string", |value: Value| str_of(&value));
    env.add_filter("int", to_int);
    env.add_filter("float", to_float);
    env.add_filter("trim", trim);
    env.add_filter("wordcount", |text: String| text.split_whitespace().count());
    env.add_test("sequence", is_sequence);
    env.add_test("iterable", is_iterable);
    env.add_test("callable", |value: Value| {
        value.as_object().is_some() && value.kind() == ValueKind::Plain
    });
    env.add_function("cycler", |items: Rest<Value>| {
        minijinja_contrib::globals::cycler(items.0)
    });
    env.add_function("joiner", minijinja_contrib::globals::joiner);
    env.add_function("raise_exception", raise_exception);
    env.add_function("strftime_now", strftime_now);
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text.into())
}

/// Jinja2: whatever has a length and items, which text, mappings and Undefined have too.
fn is_sequence(value: Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq
            | ValueKind::Map
            | ValueKind::String
            | ValueKind::Bytes
            | ValueKind::Undefined
    )
}

fn is_iterable(value: Value) -> bool {
    !value.is_none() && (value.is_undefined() || value.try_iter().is_ok())
}

/// `def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`
fn to_json(value: Value, args: Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let argument = |position: usize, name: &str| -> Result<Option<Value>, Error> {
        let given = match args.get(position) {
            Some(value) => Some(value.clone()),
            None => kwargs.get::<Option<Value>>(name)?,
        };
        Ok(given.filter(|value| !value.is_none() && !value.is_undefined()))
    };
    let ensure_ascii = argument(0, "ensure_ascii")?.is_some_and(|value| value.is_true());
    let indent = argument(1, "indent")?.map(indent_text).transpose()?;
    let separators = argument(2, "separators")?;
    let sort_keys = argument(3, "sort_keys")?.is_some_and(|value| value.is_true());
    kwargs.assert_all_used()?;
    let (item_separator, key_separator) = match separators {
        Some(pair) => (
            str_of(&pair.get_item_by_index(0)?),
            str_of(&pair.get_item_by_index(1)?),
        ),
        None if indent.is_some() => (",".into(), ": ".into()),
        None => (", ".into(), ": ".into()),
    };
    let writer = JsonWriter {
        ensure_ascii,
        indent,
        item_separator,
        key_separator,
        sort_keys,
    };
    let mut out = String::new();
    writer.write(&value, 0, &mut out)?;
    Ok(Value::from(out))
}

fn indent_text(value: Value) -> Result<String, Error> {
    const MAX_INDENT: usize = 64;
    if let Some(text) = value.as_str() {
        return Ok(text.to_string());
    }
    let width = if value.kind() == ValueKind::Bool {
        usize::from(value.is_true())
    } else {
        usize::try_from(value.clone()).map_err(|_| invalid(format!("bad indent {value}")))?
    };
    if width > MAX_INDENT {
        return Err(invalid(format!(
            "an indent of {width} is more than {MAX_INDENT}"
        )));
    }
    Ok(" ".repeat(width))
}

fn to_int(value: Value, default: Option<Value>) -> Value {
    let default = default.unwrap_or_else(|| Value::from(0));
    let truncate = |number: f64| number.is_finite().then(|| Value::from(number as i64));
    match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => value,
        ValueKind::Number => f64::try_from(value)
            .ok()
            .and_then(truncate)
            .unwrap_or(default),
        ValueKind::String => {
            let text = value.as_str().unwrap_or("").trim().replace('_', "");
            let integer = text.parse::<i64>().ok().map(Value::from);
            let number = || text.parse::<f64>().ok().and_then(truncate);
            integer.or_else(number).unwrap_or(default)
        }
        _ => default,
    }
}

fn to_float(value: Value, default: Option<Value>) -> Value {
    let default = default.unwrap_or_else(|| Value::from(0.0));
    let number = match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value).ok(),
        ValueKind::String => value.as_str().and_then(|text| text.trim().parse().ok()),
        _ => None,
    };
    number.map_or(default, Value::from)
}

fn trim(value: Value, chars: Option<String>) -> String {
    let text = str_of(&value);
    let trims = |c: char| match &chars {
        Some(chars) => chars.contains(c),
        None => is_space(c),
    };
    text.trim_matches(trims).to_string()
}

fn raise_exception(message: Value) -> Result<Value, Error> {
    let text = str_of(&message);
    RAISED.set(Some(text.clone()));
    Err(invalid(text))
}

/// `datetime.now().strftime(format)`, by the C library as Python does it.
fn strftime_now(format: String) -> Result<String, Error> {
    if format.contains("%f") {
        // Python adds microseconds itself; the C library does not know them.
        return Err(invalid("strftime_now does not support %f"));
    }
    let seconds = match UNIX_SECONDS.get() {
        negative if negative < 0 => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |passed| passed.as_secs() as libc::time_t),
        seconds => seconds,
    };
    if format.is_empty() {
        return Ok(format);
    }
    let format = CString::new(format).map_err(|error| invalid(error.to_string()))?;
    let mut buffer = vec![0u8; 1024];
    // SAFETY: localtime_r writes one tm; strftime writes at most the buffer's length into it and
    // returns how much; both get pointers to live values only.
    let length = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut time);
        libc::strftime(
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            format.as_ptr(),
            &time,
        )
    };
    buffer.truncate(length);
    String::from_utf8(buffer).map_err(|error| invalid(error.to_string()))
}
