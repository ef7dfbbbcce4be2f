//! `{% generation %}` … `{% endgeneration %}`, the blocks in which Transformers' templates wrap
//! what the assistant generates.
//!
//! The template engine has no tags of our own, so that the blocks become call blocks of a function
//! that wraps its body in two marks. The marks are taken out again after rendering. Transformers
//! implements the tag as a call block too, so that white space and scopes come out the same. One
//! thing differs: the engine's call block does not see a namespace that its body only assigns to
//! (`set ns.x = …`). Such names become defaults of the block's arguments, which makes it see them.

use std::collections::BTreeSet;

/// The function that the rewritten template calls.
pub const FUNCTION: &str = "__hftext_generation";

/// Two characters that occur neither in the template nor in its data.
#[derive(Clone, Copy)]
pub struct Marks {
    pub open: char,
    pub close: char,
}

impl Marks {
    /// Picks two private-use characters that `haystacks` do not contain.
    pub fn absent_from(haystacks: &[&str]) -> Option<Marks> {
        let candidates = ('\u{f0000}'..='\u{ffffd}').chain('\u{e000}'..='\u{f8ff}');
        let mut free = candidates.filter(|c| haystacks.iter().all(|text| !text.contains(*c)));
        Some(Marks {
            open: free.next()?,
            close: free.next()?,
        })
    }

    /// Takes the marks out of `text`; returns it with the byte ranges that they enclosed.
    pub fn strip(self, text: &str) -> (String, Vec<(usize, usize)>) {
        let mut out = String::with_capacity(text.len());
        let mut spans = Vec::new();
        let mut open = Vec::new();
        for c in text.chars() {
            if c == self.open {
                open.push(out.len());
            } else if c == self.close {
                spans.extend(open.pop().map(|begin| (begin, out.len())));
            } else {
                out.push(c);
            }
        }
        (out, spans)
    }
}

/// Rewrites the blocks of `source`; returns the new source and whether there were any.
pub fn rewrite(source: &str) -> (String, bool) {
    let mut scanner = Scanner {
        source,
        position: 0,
        copied: 0,
        raw: false,
        found: false,
        blocks: Vec::new(),
        out: String::with_capacity(source.len() + 64),
    };
    while scanner.step() {}
    scanner.out.push_str(&source[scanner.copied..]);
    (scanner.out, scanner.found)
}

/// Walks over a template and skips what is no tag: text, comments, expressions, raw blocks and
/// string literals inside of tags.
struct Scanner<'a> {
    source: &'a str,
    position: usize,
    /// Up to here `source` is in `out`.
    copied: usize,
    raw: bool,
    found: bool,
    /// The generation blocks that are open, the innermost last.
    blocks: Vec<Block>,
    out: String,
}

/// An open generation block.
struct Block {
    /// Where in `out` its arguments belong.
    arguments_at: usize,
    /// Namespaces that its body assigns to.
    namespaces: BTreeSet<String>,
}

/// A tag's name, and where the tag ends if nothing else is in it.
struct TagHead {
    begin: usize,
    end: usize,
    bare_end: Option<usize>,
}

impl Scanner<'_> {
    fn bytes(&self) -> &[u8] {
        self.source.as_bytes()
    }

    /// Handles the next delimiter; false at the end.
    fn step(&mut self) -> bool {
        let Some(found) = self.source[self.position..].find('{') else {
            return false;
        };
        let begin = self.position + found;
        let next = self.bytes().get(begin + 1).copied();
        self.position = match next {
            Some(b'%') => self.tag(begin),
            Some(b'#') if !self.raw => self.comment_end(begin + 2),
            Some(b'{') if !self.raw => self.delimiter_end(begin + 2, b"}}"),
            _ => begin + 1,
        };
        self.position < self.source.len()
    }

    fn comment_end(&self, from: usize) -> usize {
        let end = self.source[from..].find("#}");
        end.map_or(self.source.len(), |offset| from + offset + 2)
    }

    /// Handles the tag that begins at `begin`; returns where to go on.
    fn tag(&mut self, begin: usize) -> usize {
        let head = self.tag_head(begin + 2);
        let name = &self.source[head.begin..head.end];
        match (name, head.bare_end) {
            ("endraw", Some(end)) => {
                self.raw = false;
                end
            }
            _ if self.raw => begin + 2,
            ("raw", Some(end)) => {
                self.raw = true;
                end
            }
            ("generation", Some(end)) => self.open_block(&head, end),
            ("endgeneration", Some(end)) => self.close_block(&head, end),
            ("set", None) if !self.blocks.is_empty() => self.assignment(&head),
            _ => self.delimiter_end(head.end, b"%}"),
        }
    }

    fn open_block(&mut self, head: &TagHead, end: usize) -> usize {
        self.replace(head, "call", end);
        self.blocks.push(Block {
            arguments_at: self.out.len(),
            namespaces: BTreeSet::new(),
        });
        self.out.push_str(&format!(" {FUNCTION}()"));
        end
    }

    fn close_block(&mut self, head: &TagHead, end: usize) -> usize {
        self.replace(head, "endcall", end);
        let Some(block) = self.blocks.pop() else {
            return end; // The engine reports the tag that does not match.
        };
        if !block.namespaces.is_empty() {
            let names = block.namespaces.iter().enumerate();
            let arguments: Vec<String> = names
                .map(|(i, name)| format!("{FUNCTION}{i}={name}"))
                .collect();
            let arguments = format!("({})", arguments.join(", "));
            self.out.insert_str(block.arguments_at, &arguments);
        }
        if let Some(outer) = self.blocks.last_mut() {
            outer.namespaces.extend(block.namespaces);
        }
        end
    }

    /// Notes `name` of `set name.attribute = …`.
    fn assignment(&mut self, head: &TagHead) -> usize {
        let target = self.source[head.end..].trim_start();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = target.split(|c| !is_name(c)).next().unwrap_or("");
        let block = self.blocks.last_mut();
        if let (true, Some(block)) = (target[name.len()..].starts_with('.'), block) {
            block.namespaces.insert(name.to_string());
        }
        self.delimiter_end(head.end, b"%}")
    }

    fn replace(&mut self, head: &TagHead, with: &str, end: usize) -> usize {
        self.found = true;
        self.out.push_str(&self.source[self.copied..head.begin]);
        self.out.push_str(with);
        self.copied = head.end;
        end
    }

    fn tag_head(&self, from: usize) -> TagHead {
        let begin = self.skip_space(self.skip_control(from));
        let mut end = begin;
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        while self.bytes().get(end).is_some_and(is_name) {
            end += 1;
        }
        let close = self.skip_control(self.skip_space(end));
        let bare = self.bytes()[close.min(self.source.len())..].starts_with(b"%}");
        TagHead {
            begin,
            end,
            bare_end: bare.then_some(close + 2),
        }
    }

    fn skip_control(&self, at: usize) -> usize {
        let is_control = |b: &u8| matches!(b, b'-' | b'+');
        at + usize::from(self.bytes().get(at).is_some_and(is_control))
    }

    fn skip_space(&self, mut at: usize) -> usize {
        while self.bytes().get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    }

    /// Behind the closing delimiter: not one inside of a string or of brackets.
    fn delimiter_end(&self, from: usize, close: &[u8]) -> usize {
        let bytes = self.bytes();
        let mut depth = 0i32;
        let mut at = from;
        while at < bytes.len() {
            match bytes[at] {
                quote @ (b'"' | b'\'') => at = self.string_end(at + 1, quote),
                b'{' | b'[' | b'(' => depth += 1,
                _ if depth <= 0 && bytes[at..].starts_with(close) => return at + 2,
                b'}' | b']' | b')' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        bytes.len()
    }

    /// The position of the closing quote.
    fn string_end(&self, mut at: usize, quote: u8) -> usize {
        let bytes = self.bytes();
        while at < bytes.len() && bytes[at] != quote {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(source: &str) -> String {
        rewrite(source).0
    }

    #[test]
    fn rewrites_tags_and_keeps_white_space_control() {
        let (out, found) = rewrite("a{%- generation -%}b{%+ endgeneration +%}c");
        assert_eq!(out, "a{%- call __hftext_generation() -%}b{%+ endcall +%}c");
        assert!(found);
    }

    #[test]
    fn leaves_everything_else_alone() {
        for source in [
            "plain { text } with {",
            "{# {% generation %} #}",
            "{% raw %}{% generation %}{% endraw %}",
            "{{ '{% generation %}' }}",
            "{% set x = \"{% generation %}\" %}",
            "{% set x = {'a': '%}{% generation %}'} %}",
            "{% generation",
            "{% if generation %}{% endif %}",
            "{{ 'unterminated",
            "ä{%",
        ] {
            assert_eq!(rewrite(source), (source.to_string(), false), "{source}");
        }
    }

    #[test]
    fn shows_assigned_namespaces_to_the_block() {
        let source = "{% generation %}{%- set ns.a = 1 %}{% set x = 2 %}{% endgeneration %}";
        let call = "{% call(__hftext_generation0=ns) __hftext_generation() %}";
        assert!(rewritten(source).starts_with(call), "{}", rewritten(source));
    }

    #[test]
    fn goes_on_behind_a_raw_block() {
        let source = "{% raw %}{{ {% generation %}{% endraw %}{% generation %}x{% endgeneration %}";
        assert!(rewritten(source).ends_with("{% call __hftext_generation() %}x{% endcall %}"));
        assert!(rewritten(source).starts_with("{% raw %}{{ {% generation %}{% endraw %}"));
    }

    #[test]
    fn strips_marks_and_reports_byte_ranges() {
        let marks = Marks::absent_from(&["\u{f0000}", "x"]).unwrap();
        assert_eq!(marks.open, '\u{f0001}');
        let marked = format!("ä{0}b{1}c{0}{1}", marks.open, marks.close);
        assert_eq!(marks.strip(&marked), ("äbc".into(), vec![(2, 3), (4, 4)]));
    }
}
