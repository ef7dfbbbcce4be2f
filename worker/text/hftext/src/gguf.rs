//! The tokenizer that the metadata of a GGUF file describes.

use crate::tokenizer::failure;
use crate::{Failure, Result};
use serde::Deserialize;
use tokenizers::models::bpe::{Vocab, BPE};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, PreTokenizerWrapper, SplitDelimiterBehavior, Tokenizer};

/// `tokenizer.ggml.token_type` of tokens that are matched before the pre-tokenizer runs.
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

const SUPPORTED_PRE: &str = "default, gpt-2, smollm, llama-bpe, qwen2";

/// Llama 3 splits numbers into groups of up to three digits, Qwen 2 into single digits.
const LLAMA3_SPLIT: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const QWEN2_SPLIT: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// `tokenizer.ggml.*` of one file. Tokens are in GPT-2's alphabet for bytes already.
#[derive(Deserialize)]
pub struct GgufVocabulary {
    model: String,
    pre: String,
    tokens: Vec<String>,
    merges: Vec<String>,
    token_types: Vec<i32>,
    /// The id to put before every text when special tokens are asked for.
    bos_id: Option<u32>,
}

/// Builds the tokenizer.
pub fn from_gguf(vocabulary: &GgufVocabulary) -> Result<Tokenizer> {
    check(vocabulary)?;
    let tokens: Vocab = vocabulary
        .tokens
        .iter()
        .enumerate()
        .map(|(id, token)| (token.clone(), id as u32))
        .collect();
    let bpe = BPE::builder()
        .vocab_and_merges(tokens, split_merges(&vocabulary.merges)?)
        .ignore_merges(is_llama3(&vocabulary.pre))
        .build()
        .map_err(failure)?;
    let mut tokenizer = Tokenizer::new(bpe);
    tokenizer.with_pre_tokenizer(Some(Sequence::new(pre_tokenizers(&vocabulary.pre)?)));
    tokenizer.with_decoder(Some(ByteLevel::new(true, true, true)));
    add_tokens(vocabulary, &mut tokenizer)?;
    if let Some(bos_id) = vocabulary.bos_id {
        tokenizer.with_post_processor(Some(bos_processor(vocabulary, bos_id)?));
    }
    Ok(tokenizer)
}

fn check(vocabulary: &GgufVocabulary) -> Result<()> {
    if vocabulary.model != "gpt2" {
        return Err(Failure::Error(format!(
            "tokenizer.ggml.model is {:?}, but only \"gpt2\" (byte-level BPE) is supported",
            vocabulary.model
        )));
    }
    let types = vocabulary.token_types.len();
    if types != 0 && types != vocabulary.tokens.len() {
        return Err(Failure::Error(format!(
            "tokenizer.ggml.token_type has {types} entries, but tokenizer.ggml.tokens has {}",
            vocabulary.tokens.len()
        )));
    }
    Ok(())
}

/// A merge is split at its first space: the alphabet for bytes has no space in it.
fn split_merges(merges: &[String]) -> Result<Vec<(String, String)>> {
    let split = |merge: &String| {
        merge
            .split_once(' ')
            .map(|(left, right)| (left.to_string(), right.to_string()))
            .ok_or_else(|| Failure::Error(format!("the merge {merge:?} has no space")))
    };
    merges.iter().map(split).collect()
}

fn is_llama3(pre: &str) -> bool {
    matches!(pre, "llama-bpe" | "llama3" | "llama-v3")
}

fn pre_tokenizers(pre: &str) -> Result<Vec<PreTokenizerWrapper>> {
    let byte_level = |use_regex| ByteLevel::new(false, false, use_regex).into();
    let split = |regex: &str| -> Result<PreTokenizerWrapper> {
        let pattern = SplitPattern::Regex(regex.into());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
        Ok(split.map_err(failure)?.into())
    };
    match pre {
        "" | "default" | "gpt-2" => Ok(vec![byte_level(true)]),
        "smollm" => Ok(vec![Digits::new(true).into(), byte_level(true)]),
        "qwen2" => Ok(vec![split(QWEN2_SPLIT)?, byte_level(false)]),
        _ if is_llama3(pre) => Ok(vec![split(LLAMA3_SPLIT)?, byte_level(false)]),
        _ => Err(Failure::Error(format!(
            "tokenizer.ggml.pre is {pre:?}, but only {SUPPORTED_PRE} are supported"
        ))),
    }
}

fn add_tokens(vocabulary: &GgufVocabulary, tokenizer: &mut Tokenizer) -> Result<()> {
    let of_type = |wanted: &[i32]| -> Vec<String> {
        let typed = vocabulary.tokens.iter().zip(&vocabulary.token_types);
        typed
            .filter(|(_, kind)| wanted.contains(kind))
            .map(|(token, _)| token.clone())
            .collect()
    };
    let special = of_type(&[CONTROL, UNKNOWN]);
    let special = special
        .into_iter()
        .map(|token| AddedToken::from(token, true));
    tokenizer
        .add_special_tokens(special.collect::<Vec<_>>())
        .map_err(failure)?;
    let user_defined = of_type(&[USER_DEFINED]).into_iter();
    let user_defined = user_defined.map(|token| AddedToken::from(token, false).normalized(false));
    tokenizer
        .add_tokens(user_defined.collect::<Vec<_>>())
        .map_err(failure)?;
    Ok(())
}

fn bos_processor(vocabulary: &GgufVocabulary, bos_id: u32) -> Result<TemplateProcessing> {
    let bos = vocabulary.tokens.get(bos_id as usize).ok_or_else(|| {
        Failure::Error(format!(
            "tokenizer.ggml.bos_token_id {bos_id} is outside the vocabulary of {} tokens",
            vocabulary.tokens.len()
        ))
    })?;
    // Built from pieces: the text form would split a name that has a space or a colon in it.
    let special = serde_json::json!({"SpecialToken": {"id": bos, "type_id": 0}});
    let first = serde_json::json!({"Sequence": {"id": "A", "type_id": 0}});
    let second = serde_json::json!({"Sequence": {"id": "B", "type_id": 1}});
    let json = serde_json::json!({
        "type": "TemplateProcessing",
        "single": [special, first],
        "pair": [special, first, second],
        "special_tokens": {bos: {"id": bos, "ids": [bos_id], "tokens": [bos]}},
    });
    Ok(serde_json::from_value(json)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::{decode, encode, special_ids};
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    fn vocabulary(pre: &str) -> GgufVocabulary {
        let tokens = ["<s>", "a", "b", "ab", "1", "Ġ", "Ġab", "<think>", "2"];
        GgufVocabulary {
            model: "gpt2".into(),
            pre: pre.into(),
            tokens: tokens.map(String::from).to_vec(),
            merges: vec!["a b".into(), "Ġ ab".into()],
            token_types: vec![CONTROL, 1, 1, 1, 1, 1, 1, USER_DEFINED, 1],
            bos_id: Some(0),
        }
    }

    fn error_of(vocabulary: &GgufVocabulary) -> String {
        match from_gguf(vocabulary) {
            Err(Failure::Error(text)) => text,
            _ => panic!("no error"),
        }
    }

    #[test]
    fn encodes_with_merges_and_added_tokens() {
        let tokenizer = from_gguf(&vocabulary("smollm")).unwrap();
        let encoding = encode(&tokenizer, "ab ab12<think>a<s>", true).unwrap();
        assert_eq!(encoding.get_ids(), [0, 3, 6, 4, 8, 7, 1, 0]);
        assert_eq!(decode(&tokenizer, &[3, 6, 4], true).unwrap(), "ab ab1");
        assert_eq!(special_ids(&tokenizer), [0]);
        let plain = encode(&tokenizer, "ab", false).unwrap();
        assert_eq!(plain.get_ids(), [3]);
    }

    #[test]
    fn splits_numbers_as_the_family_does() {
        for (pre, pieces) in [("smollm", 4), ("qwen2", 4), ("llama-bpe", 2), ("gpt-2", 1)] {
            let sequence = Sequence::new(pre_tokenizers(pre).unwrap());
            let mut text = PreTokenizedString::from("1234");
            sequence.pre_tokenize(&mut text).unwrap();
            let splits = text.get_splits(OffsetReferential::Original, OffsetType::Byte);
            assert_eq!(splits.len(), pieces, "{pre}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        assert_eq!(
            error_of(&vocabulary("viking")),
            "tokenizer.ggml.pre is \"viking\", but only default, gpt-2, smollm, llama-bpe, qwen2 \
             are supported"
        );
        let mut other = vocabulary("smollm");
        other.model = "llama".into();
        assert!(error_of(&other).contains("only \"gpt2\""));
        let mut short = vocabulary("smollm");
        short.token_types.pop();
        assert!(error_of(&short).contains("8 entries"));
        let mut merge = vocabulary("smollm");
        merge.merges.push("ab".into());
        assert_eq!(error_of(&merge), "the merge \"ab\" has no space");
        let mut bos = vocabulary("smollm");
        bos.bos_id = Some(99);
        assert!(error_of(&bos).contains("bos_token_id 99"));
    }
}
