//! The C ABI: pointers in, pointers out, no panic.
//!
//! Every function with a `hftext_text* error` fills it when it does not return 0.

use crate::gguf::{self, GgufVocabulary};
use crate::template::ChatTemplate;
use crate::tokenizer;
use crate::{Failure, Result};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;
use tokenizers::Tokenizer;

const OK: c_int = 0;
const ERROR: c_int = 1;
const RAISED: c_int = 2;
const PANICKED: c_int = 3;

/// Owned bytes; `data` is null if there are none.
#[repr(C)]
pub struct Text {
    data: *mut c_char,
    size: usize,
}

impl Text {
    fn new(text: String) -> Text {
        let bytes = text.into_bytes().into_boxed_slice();
        let size = bytes.len();
        Text {
            data: Box::into_raw(bytes).cast(),
            size,
        }
    }
}

/// Owned numbers.
#[repr(C)]
pub struct Array<T> {
    data: *mut T,
    size: usize,
}

impl<T> Array<T> {
    fn new(items: Vec<T>) -> Array<T> {
        let items = items.into_boxed_slice();
        let size = items.len();
        Array {
            data: Box::into_raw(items).cast(),
            size,
        }
    }
}

/// Frees what `new` leaked.
unsafe fn free_slice<T>(data: &mut *mut T, size: &mut usize) {
    if !data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            *data, *size,
        )));
    }
    *data = std::ptr::null_mut();
    *size = 0;
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static PANIC_LOCATION: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps panics of this library from being printed; where they happened goes into the error.
fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if INSIDE.get() {
                PANIC_LOCATION.set(info.location().map(ToString::to_string).unwrap_or_default());
            } else {
                previous(info);
            }
        }));
    });
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".into());
    format!("internal error: {text} at {}", PANIC_LOCATION.take())
}

/// Runs `call` so that nothing unwinds into C++.
unsafe fn guard(error: *mut Text, call: impl FnOnce() -> Result<()>) -> c_int {
    install_panic_hook();
    let outer = INSIDE.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    INSIDE.set(outer);
    let (code, text) = match result {
        Ok(Ok(())) => return OK,
        Ok(Err(Failure::Error(text))) => (ERROR, text),
        Ok(Err(Failure::Raised(text))) => (RAISED, text),
        Err(payload) => (PANICKED, panic_text(payload.as_ref())),
    };
    if let Some(error) = error.as_mut() {
        *error = Text::new(text);
    }
    code
}

unsafe fn bytes<'a>(data: *const c_char, size: usize) -> &'a [u8] {
    if size == 0 {
        return &[];
    }
    std::slice::from_raw_parts(data.cast(), size)
}

unsafe fn utf8<'a>(data: *const c_char, size: usize) -> Result<&'a str> {
    Ok(std::str::from_utf8(bytes(data, size))?)
}

/// # Safety
/// `text` is null or filled by this library.
#[no_mangle]
pub unsafe extern "C" fn hftext_text_free(text: *mut Text) {
    if let Some(text) = text.as_mut() {
        free_slice(&mut text.data, &mut text.size);
    }
}

/// # Safety
/// `array` is null or filled by this library.
#[no_mangle]
pub unsafe extern "C" fn hftext_ids_free(array: *mut Array<u32>) {
    if let Some(array) = array.as_mut() {
        free_slice(&mut array.data, &mut array.size);
    }
}

/// # Safety
/// `array` is null or filled by this library.
#[no_mangle]
pub unsafe extern "C" fn hftext_ranges_free(array: *mut Array<[usize; 2]>) {
    if let Some(array) = array.as_mut() {
        free_slice(&mut array.data, &mut array.size);
    }
}

/// # Safety
/// `error` is writable.
#[no_mangle]
pub unsafe extern "C" fn hftext_panic_for_test(error: *mut Text) -> c_int {
    guard(error, || panic!("asked for"))
}

/// # Safety
/// `json` has `size` bytes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_from_json(
    json: *const c_char,
    size: usize,
    out: *mut *mut Tokenizer,
    error: *mut Text,
) -> c_int {
    guard(error, || {
        *out = Box::into_raw(Box::new(tokenizer::from_json(bytes(json, size))?));
        Ok(())
    })
}

/// # Safety
/// `json` has `size` bytes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_from_gguf(
    json: *const c_char,
    size: usize,
    out: *mut *mut Tokenizer,
    error: *mut Text,
) -> c_int {
    guard(error, || {
        let vocabulary: GgufVocabulary = serde_json::from_slice(bytes(json, size))?;
        *out = Box::into_raw(Box::new(gguf::from_gguf(&vocabulary)?));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is null or comes from this library and is not used any more.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_free(tokenizer: *mut Tokenizer) {
    guard(std::ptr::null_mut(), || {
        if !tokenizer.is_null() {
            drop(Box::from_raw(tokenizer));
        }
        Ok(())
    });
}

/// # Safety
/// `text` has `size` bytes; `ids` and `error` are writable; `offsets` is null or writable.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_encode(
    tokenizer: *const Tokenizer,
    text: *const c_char,
    size: usize,
    add_special_tokens: c_int,
    ids: *mut Array<u32>,
    offsets: *mut Array<[usize; 2]>,
    error: *mut Text,
) -> c_int {
    guard(error, || {
        let text = utf8(text, size)?;
        let encoding = tokenizer::encode(&*tokenizer, text, add_special_tokens != 0)?;
        *ids = Array::new(encoding.get_ids().to_vec());
        if let Some(offsets) = offsets.as_mut() {
            let ranges = encoding.get_offsets().iter();
            *offsets = Array::new(ranges.map(|(begin, end)| [*begin, *end]).collect());
        }
        Ok(())
    })
}

/// # Safety
/// `ids` has `count` numbers; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_decode(
    tokenizer: *const Tokenizer,
    ids: *const u32,
    count: usize,
    skip_special_tokens: c_int,
    out: *mut Text,
    error: *mut Text,
) -> c_int {
    guard(error, || {
        let ids = if count == 0 {
            &[]
        } else {
            std::slice::from_raw_parts(ids, count)
        };
        *out = Text::new(tokenizer::decode(
            &*tokenizer,
            ids,
            skip_special_tokens != 0,
        )?);
        Ok(())
    })
}

/// # Safety
/// `token` has `size` bytes. Returns -1 for a token that does not exist.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_token_to_id(
    tokenizer: *const Tokenizer,
    token: *const c_char,
    size: usize,
) -> i64 {
    let mut id = -1;
    guard(std::ptr::null_mut(), || {
        let found = (*tokenizer).token_to_id(utf8(token, size)?);
        id = found.map_or(-1, i64::from);
        Ok(())
    });
    id
}

/// # Safety
/// `out` is writable. Returns 1 for an id that does not exist.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_id_to_token(
    tokenizer: *const Tokenizer,
    id: u32,
    out: *mut Text,
) -> c_int {
    guard(std::ptr::null_mut(), || {
        let token = (*tokenizer).id_to_token(id);
        *out = Text::new(token.ok_or(Failure::Error(String::new()))?);
        Ok(())
    })
}

/// # Safety
/// `tokenizer` comes from this library.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_vocab_size(tokenizer: *const Tokenizer) -> usize {
    (*tokenizer).get_vocab_size(true)
}

/// # Safety
/// `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_special_ids(
    tokenizer: *const Tokenizer,
    out: *mut Array<u32>,
    error: *mut Text,
) -> c_int {
    guard(error, || {
        *out = Array::new(tokenizer::special_ids(&*tokenizer));
        Ok(())
    })
}

/// # Safety
/// `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn hftext_tokenizer_to_json(
    tokenizer: *const Tokenizer,
    out: *mut Text,
    error: *mut Text,
) -> c_int {
    guard(error, || {
        *out = Text::new(tokenizer::to_json(&*tokenizer)?);
        Ok(())
    })
}

/// # Safety
/// `source` has `size` bytes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn hftext_template_new(
    source: *const c_char,
    size: usize,
    out: *mut *mut ChatTemplate,
    error: *mut Text,
) -> c_int {
    guard(error, || {
        *out = Box::into_raw(Box::new(ChatTemplate::new(utf8(source, size)?)?));
        Ok(())
    })
}

/// # Safety
/// `template` is null or comes from this library and is not used any more.
#[no_mangle]
pub unsafe extern "C" fn hftext_template_free(template: *mut ChatTemplate) {
    guard(std::ptr::null_mut(), || {
        if !template.is_null() {
            drop(Box::from_raw(template));
        }
        Ok(())
    });
}

/// # Safety
/// `template` comes from this library.
#[no_mangle]
pub unsafe extern "C" fn hftext_template_has_generation(template: *const ChatTemplate) -> c_int {
    c_int::from((*template).has_generation())
}

/// # Safety
/// `variables_json` has `size` bytes; `text`, `spans` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn hftext_template_render(
    template: *const ChatTemplate,
    variables_json: *const c_char,
    size: usize,
    unix_seconds: i64,
    text: *mut Text,
    spans: *mut Array<[usize; 2]>,
    error: *mut Text,
) -> c_int {
    guard(error, || {
        let rendering = (*template).render(utf8(variables_json, size)?, unix_seconds)?;
        *text = Text::new(rendering.text);
        let ranges = rendering.spans.into_iter();
        *spans = Array::new(ranges.map(|(begin, end)| [begin, end]).collect());
        Ok(())
    })
}
