//! Expressions that a model writes for the calculator.

use burnish::agent::tools::built_in::evaluate;

use crate::Target;

pub(crate) fn expressions() -> Target {
    Target {
        name: "expressions",
        seeds: || ["467*83", "-(2+3.5)**2//7%4", "2**3**2-1e3/.5", "((1))"].map(|text| text.as_bytes().to_vec()).to_vec(),
        words: &["**", "//", "(", ")", "-", "+", "%", ".", "e", "1e308", "9**9", "99999", " ", "é"],
        cases: 400,
        read: |input, _| _ = evaluate(&String::from_utf8_lossy(input)),
    }
}
