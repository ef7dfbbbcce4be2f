//! Text to token ids and back.

use crate::{Failure, Result};
use tokenizers::{Encoding, Tokenizer};

/// Reads a tokenizer.json. Truncation and padding that it bakes in are switched off: whoever
/// trains decides about both.
pub fn from_json(json: &[u8]) -> Result<Tokenizer> {
    let mut tokenizer = Tokenizer::from_bytes(json).map_err(failure)?;
    tokenizer.with_truncation(None).map_err(failure)?;
    tokenizer.with_padding(None);
    Ok(tokenizer)
}

/// Encodes one text. `encode` and not `encode_batch`, which starts a thread pool of its own.
pub fn encode(tokenizer: &Tokenizer, text: &str, add_special_tokens: bool) -> Result<Encoding> {
    tokenizer.encode(text, add_special_tokens).map_err(failure)
}

/// Decodes ids; those that the vocabulary does not have are left out.
pub fn decode(tokenizer: &Tokenizer, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
    tokenizer.decode(ids, skip_special_tokens).map_err(failure)
}

/// Ids of the added tokens that are marked as special, sorted.
pub fn special_ids(tokenizer: &Tokenizer) -> Vec<u32> {
    let added = tokenizer.get_added_tokens_decoder();
    let mut ids: Vec<u32> = added
        .iter()
        .filter(|(_, token)| token.special)
        .map(|(id, _)| *id)
        .collect();
    ids.sort_unstable();
    ids
}

/// The text of a tokenizer.json.
pub fn to_json(tokenizer: &Tokenizer) -> Result<String> {
    tokenizer.to_string(true).map_err(failure)
}

/// The crate's own error type is a box without `Display`'s context; keep its text.
pub fn failure(error: tokenizers::Error) -> Failure {
    Failure::Error(error.to_string())
}
