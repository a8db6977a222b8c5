//! The program in a response, and how a function of it is called.

use crate::util::python_value::is_alpha;

/// The last block of Python; where none is marked as such, the first block. `None` without a block.
pub fn of_response(response: &str) -> Option<&str> {
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

/// Names of these modules are there for the function, in this order: a later one hides a former one's.
const OPENED: &str = "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json \
                      builtins typing";
/// And then these modules themselves.
const IMPORTED: &str = "string, re, datetime, collections, heapq, bisect, copy, math, random, statistics, itertools, functools, operator, io, sys, json";

/// A program that calls `function` of `code`, or of its class `Solution`, with the lines of the standard input as JSON, and
/// prints what it returns: text and numbers as they are, anything else as JSON.
pub fn calling(code: &str, function: &str) -> String {
    let opened: String = OPENED.split_whitespace().map(|module| format!("from {module} import *\n")).collect();
    let call = include_str!("call.py").replace("FUNCTION_NAME", function);
    format!("import traceback\n{opened}import {IMPORTED}\n\n{code}\n\n{call}")
}
