//! Test cases of a row, in the formats of verl's data sets.

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use super::program::calling;
use burnish_util::exact_json::Exact;

/// Number of cases that count, as in verl.
const CASES: usize = 10;

/// Test cases: `inputs` and `outputs`, or `assert_case`. All lists have the same length, at least one. Integers can have any
/// size, as in Python.
pub(super) struct Cases {
    inputs: Vec<Exact>,
    outputs: Vec<Exact>,
    /// Code that runs after the program, one piece per case.
    asserts: Vec<String>,
    /// Function that is called with the lines of the input; `None` if the program reads its input itself.
    function: Option<String>,
}

/// A request to the service for one case.
pub(super) struct Request {
    pub code: String,
    pub stdin: Option<String>,
    /// Expected output; `None` if it suffices that the program exits successfully.
    pub expected: Option<String>,
}

impl Cases {
    /// Reads the cases of a ground truth, which is an object or its JSON text.
    ///
    /// # Errors
    /// If verl would give every response 0: invalid JSON, no test cases, or lists of different lengths.
    pub(super) fn read(ground_truth: &Value) -> Result<Self> {
        let parsed = match ground_truth.as_str() {
            Some(text) => Exact::parse(text),
            None => Exact::parse(&ground_truth.to_string()),
        };
        let mut fields = parsed.map_err(|error| anyhow!("the test cases are not JSON: {error}"))?;
        ensure!(matches!(fields, Exact::Object(_)), "the test cases are not an object with `inputs` and `outputs`");
        let asserts = list(&mut fields, "assert_case")?;
        let filled = |value: Exact| asserts.as_ref().map(|asserts| vec![value; asserts.len()]);
        let (inputs, outputs) = (list(&mut fields, "inputs")?, list(&mut fields, "outputs")?);
        let missing = "the test cases have neither `inputs` and `outputs` nor `assert_case`";
        let inputs = inputs.or_else(|| filled(Exact::Text(String::new()))).context(missing)?;
        let outputs = outputs.or_else(|| filled(Exact::Null)).context(missing)?;
        ensure!(!inputs.is_empty(), "there is no test case");
        ensure!(inputs.len() == outputs.len(), "the test cases have {} inputs for {} outputs", inputs.len(), outputs.len());
        let asserts = asserts.unwrap_or_else(|| vec![Exact::Text(String::new()); inputs.len()]);
        ensure!(
            asserts.len() == inputs.len(),
            "the test cases have {} inputs for {} items of `assert_case`",
            inputs.len(),
            asserts.len()
        );
        let text = |value: Exact| text(value).context("the items of `assert_case` must be text");
        let asserts = asserts.into_iter().map(text).collect::<Result<_>>()?;
        let function = fields.take("fn_name").and_then(self::text).filter(|name| !name.is_empty());
        Ok(Self { inputs, outputs, asserts, function })
    }

    /// Returns the requests for the first [`CASES`] cases.
    pub(super) fn requests(self, program: &str) -> Vec<Request> {
        let cases = self.inputs.into_iter().zip(self.outputs).zip(self.asserts).take(CASES);
        let given = |value: &Exact| (*value != Exact::Null).then(|| value.python_text());
        let request = |((input, expected), assert): ((Exact, Exact), String)| {
            let code = format!("{program}\n\n{assert}");
            let code = self.function.as_ref().map_or(code.clone(), |name| calling(&code, name));
            Request { code, stdin: given(&input), expected: given(&expected) }
        };
        cases.map(request).collect()
    }
}

fn list(fields: &mut Exact, name: &str) -> Result<Option<Vec<Exact>>> {
    match fields.take(name) {
        None => Ok(None),
        Some(Exact::List(values)) => Ok(Some(values)),
        Some(_) => bail!("`{name}` of the test cases is not a list"),
    }
}

fn text(value: Exact) -> Option<String> {
    if let Exact::Text(text) = value { Some(text) } else { None }
}
