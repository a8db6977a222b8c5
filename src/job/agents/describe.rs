//! One line about the agents of a run, for its dry run.

use super::start::Agents;
use burnish_agent::session::Host;

impl Agents {
    /// Names the default loop, tools, users, environments and the user's loops.
    pub fn describe(&self) -> String {
        let offers = self.host.as_ref().map(Host::offers);
        let mut tools: Vec<&str> = self.built_in.iter().map(|made| made.name()).collect();
        tools.extend(offers.iter().flat_map(|offers| &offers.tools).map(|tool| tool.name.as_str()));
        let environments = offers.iter().flat_map(|offers| &offers.environments).map(|one| one.class.as_str());
        let mut parts = vec![self.default.clone()];
        let named = |what: &str, names: Vec<&str>| (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")));
        parts.extend(named("tools", tools));
        parts.extend(named("users", self.users.iter().map(|user| user.name.as_str()).collect()));
        parts.extend(named("environment", environments.collect()));
        parts.extend(named("loops", self.custom_loops().iter().map(|own| own.name.as_str()).collect()));
        parts.extend(offers.is_some_and(|offers| offers.program).then(|| "a program that asks the model itself".to_owned()));
        parts.join("; ")
    }
}
