//! Methods of Python's str, list and dict that templates call.
//!
//! `minijinja_contrib::pycompat` has many of them; here are those that it lacks or where it takes
//! other arguments than Python. Methods that would change a value raise, as they do in the
//! sandbox in which Transformers renders.

use minijinja::value::{from_args, Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

type MethodResult = Result<Value, Error>;

const LIST_MUTATORS: [&str; 8] = [
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
];
const DICT_MUTATORS: [&str; 5] = ["clear", "pop", "popitem", "setdefault", "update"];

/// Calls `value.name(*args)`.
pub fn call(state: &mut State, value: &Value, name: &str, args: &[Value]) -> MethodResult {
    let own = match value.kind() {
        ValueKind::String => string_method(value.as_str().unwrap_or(""), name, args),
        ValueKind::Seq => list_method(value, name, args),
        ValueKind::Map => dict_method(value, name),
        _ => None,
    };
    own.unwrap_or_else(|| {
        minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
    })
}

/// `str.isspace` of one character: Unicode's white space and the four ASCII separators.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text.into())
}

fn list_method(value: &Value, name: &str, args: &[Value]) -> Option<MethodResult> {
    if LIST_MUTATORS.contains(&name) {
        return Some(Err(unsafe_attribute("list", name)));
    }
    (name == "index").then(|| list_index(value, args))
}

fn list_index(value: &Value, args: &[Value]) -> MethodResult {
    let (wanted,): (Value,) = from_args(args)?;
    let position = value.try_iter()?.position(|item| item == wanted);
    position
        .map(Value::from)
        .ok_or_else(|| invalid(format!("{wanted:?} is not in list")))
}

fn dict_method(value: &Value, name: &str) -> Option<MethodResult> {
    if DICT_MUTATORS.contains(&name) {
        return Some(Err(unsafe_attribute("dict", name)));
    }
    (name == "copy").then(|| Ok(value.clone()))
}

fn unsafe_attribute(kind: &str, name: &str) -> Error {
    invalid(format!(
        "access to attribute '{name}' of '{kind}' object is unsafe."
    ))
}

fn string_method(text: &str, name: &str, args: &[Value]) -> Option<MethodResult> {
    Some(match name {
        "strip" => strip(text, args, true, true),
        "lstrip" => strip(text, args, true, false),
        "rstrip" => strip(text, args, false, true),
        "removeprefix" => remove_affix(text, args, |text, affix| text.strip_prefix(affix)),
        "removesuffix" => remove_affix(text, args, |text, affix| text.strip_suffix(affix)),
        "partition" => partition(text, args),
        "rpartition" => rpartition(text, args),
        "split" => split(text, args),
        "rsplit" => rsplit(text, args),
        "splitlines" => split_lines(text, args),
        "title" => no_args(args).map(|()| Value::from(title(text))),
        "startswith" => affix_within(text, args, |text, affix| text.starts_with(affix)),
        "endswith" => affix_within(text, args, |text, affix| text.ends_with(affix)),
        "zfill" => zero_fill(text, args),
        "ljust" => justify(text, args, |_, _| 0),
        "rjust" => justify(text, args, |missing, _| missing),
        "center" => justify(text, args, |missing, width| {
            missing / 2 + (missing & width & 1)
        }),
        "index" => index(args, |wanted| text.find(wanted), text),
        "rindex" => index(args, |wanted| text.rfind(wanted), text),
        "casefold" => no_args(args).map(|()| Value::from(text.to_lowercase())),
        "swapcase" => no_args(args).map(|()| Value::from(swap_case(text))),
        _ => return None,
    })
}

fn no_args(args: &[Value]) -> Result<(), Error> {
    from_args(args)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn strip(text: &str, args: &[Value], left: bool, right: bool) -> MethodResult {
    let (chars,): (Option<&str>,) = from_args(args)?;
    let strips = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let mut rest = text;
    if left {
        rest = rest.trim_start_matches(strips);
    }
    if right {
        rest = rest.trim_end_matches(strips);
    }
    Ok(Value::from(rest))
}

fn remove_affix(
    text: &str,
    args: &[Value],
    remove: impl for<'a> Fn(&'a str, &str) -> Option<&'a str>,
) -> MethodResult {
    let (affix,): (&str,) = from_args(args)?;
    Ok(Value::from(remove(text, affix).unwrap_or(text)))
}

fn tuple(parts: (&str, &str, &str)) -> Value {
    Value::from((
        parts.0.to_string(),
        parts.1.to_string(),
        parts.2.to_string(),
    ))
}

fn partition(text: &str, args: &[Value]) -> MethodResult {
    let (separator,): (&str,) = from_args(args)?;
    let parts = text.split_once(non_empty(separator)?);
    Ok(tuple(parts.map_or((text, "", ""), |(head, tail)| {
        (head, separator, tail)
    })))
}

fn rpartition(text: &str, args: &[Value]) -> MethodResult {
    let (separator,): (&str,) = from_args(args)?;
    let parts = text.rsplit_once(non_empty(separator)?);
    Ok(tuple(parts.map_or(("", "", text), |(head, tail)| {
        (head, separator, tail)
    })))
}

fn non_empty(separator: &str) -> Result<&str, Error> {
    if separator.is_empty() {
        return Err(invalid("empty separator"));
    }
    Ok(separator)
}

/// `sep` and `maxsplit` of split and rsplit, by position or by name.
fn split_args(args: &[Value]) -> Result<(Option<String>, usize), Error> {
    let (separator, limit, kwargs): (Option<Value>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = match separator {
        Some(value) => Some(value),
        None => kwargs.get::<Option<Value>>("sep")?,
    };
    let limit = match limit {
        Some(value) => Some(value),
        None => kwargs.get::<Option<i64>>("maxsplit")?,
    };
    kwargs.assert_all_used()?;
    let separator = match separator.filter(|value| !value.is_none()) {
        None => None,
        Some(value) => Some(
            non_empty(
                value
                    .as_str()
                    .ok_or_else(|| invalid("must be str or None"))?,
            )?
            .to_string(),
        ),
    };
    Ok((
        separator,
        usize::try_from(limit.unwrap_or(-1)).unwrap_or(usize::MAX),
    ))
}

fn split(text: &str, args: &[Value]) -> MethodResult {
    let (separator, limit) = split_args(args)?;
    if let Some(separator) = separator {
        let parts = text.splitn(limit.saturating_add(1), separator.as_str());
        return Ok(parts.map(Value::from).collect());
    }
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let space = rest.find(is_space).filter(|_| parts.len() < limit);
        let end = space.unwrap_or(rest.len());
        parts.push(Value::from(&rest[..end]));
        rest = rest[end..].trim_start_matches(is_space);
    }
    Ok(Value::from(parts))
}

fn rsplit(text: &str, args: &[Value]) -> MethodResult {
    let (separator, limit) = split_args(args)?;
    let mut parts: Vec<Value> = Vec::new();
    if let Some(separator) = separator {
        let pieces = text.rsplitn(limit.saturating_add(1), separator.as_str());
        parts.extend(pieces.map(Value::from));
    } else {
        let mut rest = text.trim_end_matches(is_space);
        while !rest.is_empty() {
            let space = rest.char_indices().rev().find(|(_, c)| is_space(*c));
            let begin = space
                .filter(|_| parts.len() < limit)
                .map_or(0, |(at, c)| at + c.len_utf8());
            parts.push(Value::from(&rest[begin..]));
            rest = rest[..begin].trim_end_matches(is_space);
        }
    }
    parts.reverse();
    Ok(Value::from(parts))
}

fn split_lines(text: &str, args: &[Value]) -> MethodResult {
    let (keep_ends, kwargs): (Option<bool>, Kwargs) = from_args(args)?;
    let keep_ends = keep_ends.or(kwargs.get("keepends")?).unwrap_or(false);
    kwargs.assert_all_used()?;
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (end, next) = line_end(rest);
        lines.push(Value::from(&rest[..if keep_ends { next } else { end }]));
        rest = &rest[next..];
    }
    Ok(Value::from(lines))
}

/// Where the first line's text ends and where the next line begins.
fn line_end(text: &str) -> (usize, usize) {
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    match text.char_indices().find(|(_, c)| is_break(*c)) {
        None => (text.len(), text.len()),
        Some((at, '\r')) if text[at..].starts_with("\r\n") => (at, at + 2),
        Some((at, c)) => (at, at + c.len_utf8()),
    }
}

/// Every run of letters begins with a capital, also behind an apostrophe: `Don'T`.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_alphabetic();
    }
    out
}

fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    out
}

/// startswith and endswith: one affix or a tuple of them, and a range to look at.
fn affix_within(text: &str, args: &[Value], matches: impl Fn(&str, &str) -> bool) -> MethodResult {
    let (affixes, begin, end): (Value, Option<i64>, Option<i64>) = from_args(args)?;
    let Some(within) = slice(text, begin, end) else {
        return Ok(Value::from(false));
    };
    if let Some(affix) = affixes.as_str() {
        return Ok(Value::from(matches(within, affix)));
    }
    if affixes.kind() != ValueKind::Seq {
        return Err(invalid("first arg must be str or a tuple of str"));
    }
    let mut any = false;
    for affix in affixes.try_iter()? {
        let affix = affix
            .as_str()
            .ok_or_else(|| invalid("tuple must contain only str"))?;
        any = any || matches(within, affix);
    }
    Ok(Value::from(any))
}

/// `text[begin:end]`; none if the range is empty because it begins behind its end.
fn slice(text: &str, begin: Option<i64>, end: Option<i64>) -> Option<&str> {
    let count = i64::try_from(length(text)).ok()?;
    let clamp = |at: i64| if at < 0 { (at + count).max(0) } else { at };
    let begin = begin.map_or(0, clamp);
    let end = end.map_or(count, clamp).min(count);
    let offset = |at: i64| {
        let at = usize::try_from(at).unwrap_or(0);
        text.char_indices().nth(at).map_or(text.len(), |(i, _)| i)
    };
    (begin <= end).then(|| &text[offset(begin)..offset(end)])
}

fn zero_fill(text: &str, args: &[Value]) -> MethodResult {
    let (width,): (usize,) = from_args(args)?;
    let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
    let zeros = padding(width, text, '0')?;
    Ok(Value::from(format!("{sign}{zeros}{digits}")))
}

fn justify(text: &str, args: &[Value], left: impl Fn(usize, usize) -> usize) -> MethodResult {
    let (width, fill): (usize, Option<char>) = from_args(args)?;
    let padding = padding(width, text, fill.unwrap_or(' '))?;
    let missing = length(&padding);
    let split = padding
        .chars()
        .take(left(missing, width))
        .map(char::len_utf8);
    let (before, after) = padding.split_at(split.sum());
    Ok(Value::from(format!("{before}{text}{after}")))
}

/// What is missing to `width`, which a template could ask to be absurd.
fn padding(width: usize, text: &str, fill: char) -> Result<String, Error> {
    const MAX_WIDTH: usize = 1 << 20;
    if width > MAX_WIDTH {
        return Err(invalid(format!(
            "a width of {width} is more than {MAX_WIDTH}"
        )));
    }
    let missing = width.saturating_sub(length(text));
    Ok(std::iter::repeat(fill).take(missing).collect())
}

fn index(args: &[Value], find: impl Fn(&str) -> Option<usize>, text: &str) -> MethodResult {
    let (wanted,): (&str,) = from_args(args)?;
    let at = find(wanted).ok_or_else(|| invalid("substring not found"))?;
    Ok(Value::from(length(&text[..at])))
}
