//! `str()`, `repr()` and `json.dumps()` of Python for template values.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};
use std::fmt::Write;

/// `repr(float)`: the shortest digits that give the same number again, in Python's notation.
pub fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{number:e}"); // `d.ddde-7`
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{number}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

/// The number if the value is a float and not an integer.
fn as_float(value: &Value) -> Option<f64> {
    let is_float = value.kind() == ValueKind::Number && !value.is_integer();
    is_float.then(|| f64::try_from(value.clone()).ok())?
}

/// `str(value)`.
pub fn str_of(value: &Value) -> String {
    match value.kind() {
        ValueKind::Number => as_float(value).map_or_else(|| value.to_string(), float_repr),
        ValueKind::Seq | ValueKind::Map => repr_of(value),
        _ => value.to_string(),
    }
}

/// `repr(value)`.
pub fn repr_of(value: &Value) -> String {
    let mut out = String::new();
    write_repr(value, &mut out);
    out
}

fn write_repr(value: &Value, out: &mut String) {
    match value.kind() {
        ValueKind::String => write_str_repr(value.as_str().unwrap_or(""), out),
        ValueKind::Number => out.push_str(&str_of(value)),
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::Seq => write_seq_repr(value, out),
        ValueKind::Map => write_map_repr(value, out),
        _ => {
            let _ = write!(out, "{value:?}"); // `True`, `None`: writing to a String cannot fail.
        }
    }
}

fn write_seq_repr(value: &Value, out: &mut String) {
    let (open, close) = if value.is_tuple() {
        ('(', ')')
    } else {
        ('[', ']')
    };
    out.push(open);
    let mut count = 0;
    for item in value.try_iter().into_iter().flatten() {
        if count > 0 {
            out.push_str(", ");
        }
        write_repr(&item, out);
        count += 1;
    }
    if value.is_tuple() && count == 1 {
        out.push(',');
    }
    out.push(close);
}

fn write_map_repr(value: &Value, out: &mut String) {
    out.push('{');
    for (i, key) in value.try_iter().into_iter().flatten().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_repr(&key, out);
        out.push_str(": ");
        write_repr(&value.get_item(&key).unwrap_or_default(), out);
    }
    out.push('}');
}

fn write_str_repr(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for c in text.chars() {
        write_char_repr(c, quote, out);
    }
    out.push(quote);
}

fn write_char_repr(c: char, quote: char, out: &mut String) {
    let _ = match c {
        '\\' => write!(out, "\\\\"),
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        _ if c == quote => write!(out, "\\{c}"),
        _ if is_printable(c) => write!(out, "{c}"),
        _ if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32),
        _ if (c as u32) < 0x10000 => write!(out, "\\u{:04x}", c as u32),
        _ => write!(out, "\\U{:08x}", c as u32),
    };
}

/// `str.isprintable` for the classes that occur in texts: controls, separators other than the
/// space, format characters and private use.
fn is_printable(c: char) -> bool {
    let separator = c.is_whitespace() && c != ' ';
    let format = matches!(c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0001}'..='\u{e007f}');
    let private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}');
    !(c.is_control() || separator || format || private)
}

/// `json.dumps` with the arguments that Transformers' `tojson` filter has.
pub struct JsonWriter {
    pub ensure_ascii: bool,
    pub indent: Option<String>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
}

impl JsonWriter {
    /// Appends `value`; what JSON has no word for is an error, as in Python.
    pub fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(bool_name(value)),
            ValueKind::Number => out.push_str(&number(value)),
            ValueKind::String => self.write_string(value.as_str().unwrap_or(""), out),
            ValueKind::Seq => self.write_seq(value, depth, out)?,
            ValueKind::Map => self.write_map(value, depth, out)?,
            kind => {
                return Err(serialization(format!(
                    "Object of type {kind} is not JSON serializable"
                )))
            }
        }
        Ok(())
    }

    fn write_seq(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        out.push('[');
        let mut count = 0;
        for item in value.try_iter()? {
            self.next_item(count, depth, out);
            self.write(&item, depth + 1, out)?;
            count += 1;
        }
        self.close(']', count, depth, out);
        Ok(())
    }

    fn write_map(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sort_keys {
            keys.sort();
        }
        out.push('{');
        for (i, key) in keys.iter().enumerate() {
            self.next_item(i, depth, out);
            self.write_string(&key_text(key)?, out);
            out.push_str(&self.key_separator);
            self.write(&value.get_item(key)?, depth + 1, out)?;
        }
        self.close('}', keys.len(), depth, out);
        Ok(())
    }

    fn next_item(&self, index: usize, depth: usize, out: &mut String) {
        if index > 0 {
            out.push_str(&self.item_separator);
        }
        self.new_line(depth + 1, out);
    }

    fn close(&self, bracket: char, items: usize, depth: usize, out: &mut String) {
        if items > 0 {
            self.new_line(depth, out);
        }
        out.push(bracket);
    }

    fn new_line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
    }

    fn write_string(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            self.write_char(c, out);
        }
        out.push('"');
    }

    fn write_char(&self, c: char, out: &mut String) {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            _ if (c as u32) < 0x20 || (self.ensure_ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            _ => out.push(c),
        }
    }
}

fn serialization(text: String) -> Error {
    Error::new(ErrorKind::BadSerialization, text)
}

fn bool_name(value: &Value) -> &'static str {
    if value.is_true() {
        "true"
    } else {
        "false"
    }
}

fn number(value: &Value) -> String {
    match as_float(value) {
        Some(f) if f.is_nan() => "NaN".into(),
        Some(f) if f.is_infinite() => if f > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        Some(f) => float_repr(f),
        None => value.to_string(),
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or("").into()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(bool_name(key).into()),
        ValueKind::Number => Ok(number(key)),
        kind => Err(serialization(format!(
            "keys must be str, int, float, bool or None, not {kind}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_floats_as_python_does() {
        for (number, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1e16, "1e+16"),
            (123456789012345.0, "123456789012345.0"),
            (1.5e300, "1.5e+300"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float_repr(number), text);
        }
    }

    #[test]
    fn prints_containers_as_python_does() {
        let value = Value::from(vec![
            Value::from("it's"),
            Value::from("\u{200b}\n\u{7f}ä"),
            Value::from(1.5),
            Value::from(true),
            Value::from(()),
        ]);
        assert_eq!(
            repr_of(&value),
            "[\"it's\", '\\u200b\\n\\x7fä', 1.5, True, None]"
        );
        assert_eq!(
            repr_of(&Value::from_pairs([(Value::from("a"), Value::from(1))])),
            "{'a': 1}"
        );
    }
}
