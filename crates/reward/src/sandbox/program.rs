//! The program in a response, and the code that calls one of its functions.

use burnish_util::python_value::is_alpha;

/// Returns the last Python code block; if none is marked as Python, the first code block. `None` without a block.
pub(crate) fn last_code_block(response: &str) -> Option<&str> {
    if let Some((_, block)) = response.rsplit_once("```python") {
        return block.split("```").next();
    }
    let block = response.split("```").nth(1)?;
    match block.split_once('\n') {
        // The name of another language.
        Some((first, rest)) if is_alpha(first) => Some(rest),
        _ => Some(block),
    }
}

/// Modules whose names are imported for the function, in this order; later names hide earlier ones.
const OPENED: &str = "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json \
                      builtins typing";
/// Modules that are imported as modules after that.
const IMPORTED: &str = "string, re, datetime, collections, heapq, bisect, copy, math, random, statistics, itertools, functools, operator, io, sys, json";

/// Returns a program that calls `function` of `code`, or of its class `Solution`, with the lines of standard input as JSON. It
/// prints the result: text and numbers unchanged, other values as JSON.
pub(super) fn calling(code: &str, function: &str) -> String {
    let opened: String = OPENED.split_whitespace().map(|module| format!("from {module} import *\n")).collect();
    let call = include_str!("call.py").replace("FUNCTION_NAME", function);
    format!("import traceback\n{opened}import {IMPORTED}\n\n{code}\n\n{call}")
}
