//! The test cases of a row, in the forms that verl's data sets have them.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use super::CASES;
use super::program::calling;
use crate::util::python_value::text_of;

/// `inputs` and `outputs`, or `assert_case`; all of the same length, and at least one.
pub struct Cases {
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    /// Code that is run after the program, one piece per case.
    asserts: Vec<String>,
    /// The function that is to be called with the lines of the input, where the program is not to read them itself.
    function: Option<String>,
}

/// What is asked of the service for one case.
pub struct Request {
    pub code: String,
    pub stdin: Option<String>,
    /// Null if it is enough that the program ends well.
    pub expected: Value,
}

impl Cases {
    /// The cases of a ground truth, an object or the JSON text of one.
    ///
    /// # Errors
    /// Whatever verl gives every response 0 for: no JSON, nothing or not equally many of everything in it.
    pub fn read(ground_truth: &Value) -> Result<Self> {
        let parsed: Value = match ground_truth.as_str() {
            Some(text) => serde_json::from_str(text).context("the test cases are no JSON")?,
            None => ground_truth.clone(),
        };
        let Value::Object(mut fields) = parsed else { bail!("the test cases are no object with `inputs` and `outputs`") };
        let asserts = list(&mut fields, "assert_case")?;
        let filled = |value: Value| asserts.as_ref().map(|asserts| vec![value; asserts.len()]);
        let (inputs, outputs) = (list(&mut fields, "inputs")?, list(&mut fields, "outputs")?);
        let missing = "the test cases have neither `inputs` and `outputs` nor `assert_case`";
        let inputs = inputs.or_else(|| filled("".into())).context(missing)?;
        let outputs = outputs.or_else(|| filled(Value::Null)).context(missing)?;
        ensure!(!inputs.is_empty(), "there is no test case");
        ensure!(inputs.len() == outputs.len(), "there are {} inputs for {} outputs", inputs.len(), outputs.len());
        let asserts = asserts.unwrap_or_else(|| vec!["".into(); inputs.len()]);
        ensure!(asserts.len() == inputs.len(), "there are {} inputs for {} of assert_case", inputs.len(), asserts.len());
        let text = |value: &Value| value.as_str().map(str::to_owned).context("what is in assert_case must be text");
        let asserts = asserts.iter().map(text).collect::<Result<_>>()?;
        let function = fields.get("fn_name").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
        Ok(Self { inputs, outputs, asserts, function })
    }

    /// The requests for the first cases that count.
    pub fn requests(self, program: &str) -> Vec<Request> {
        let cases = self.inputs.into_iter().zip(self.outputs).zip(self.asserts).take(CASES);
        let request = |((input, expected), assert): ((Value, Value), String)| {
            let code = format!("{program}\n\n{assert}");
            let code = self.function.as_ref().map_or(code.clone(), |name| calling(&code, name));
            Request { code, stdin: (!input.is_null()).then(|| text_of(&input)), expected }
        };
        cases.map(request).collect()
    }
}

fn list(fields: &mut Map<String, Value>, name: &str) -> Result<Option<Vec<Value>>> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::Array(values)) => Ok(Some(values)),
        Some(_) => bail!("`{name}` of the test cases is no list"),
    }
}
