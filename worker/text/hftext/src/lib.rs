//! Hugging Face tokenizers and chat templates behind a C ABI, which `hftext.h` declares.
//!
//! `tokenizer` and `template` are safe Rust; `ffi` is the only module with pointers. Nothing
//! unwinds across the ABI.

mod ffi;
mod filters;
mod generation;
mod gguf;
mod python_format;
mod python_methods;
mod template;
mod tokenizer;

/// Why a call failed.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The input is wrong or cannot be handled.
    Error(String),
    /// The template called `raise_exception` with this text.
    Raised(String),
}

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Error(error.to_string())
    }
}

/// The result of everything that can fail for a reason of the caller's.
pub type Result<T> = std::result::Result<T, Failure>;
