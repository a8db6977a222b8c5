//! The number of processes in a configuration written for verl.

use burnish::config::{Choices, Loaded, PpoConfig, Request, load};

fn loaded(overrides: &[&str]) -> Loaded<PpoConfig> {
    let overrides = overrides.iter().map(|text| (*text).to_owned()).collect();
    let request = Request { config: Some("ppo_trainer".into()), overrides, ..Request::default() };
    load(&request, &Choices::default()).unwrap()
}

fn keys(loaded: &Loaded<PpoConfig>) -> Vec<&str> {
    loaded.ignored.iter().map(|one| one.key.as_str()).collect()
}

#[test]
fn the_number_of_processes_that_is_written_is_that_of_those_started() {
    let (nodes, each) = ("trainer.nnodes=2", "trainer.n_gpus_per_node=4");
    let fits = |overrides: &[&str], started| loaded(overrides).started_as(started).is_ok();
    assert!(fits(&[], 3) && fits(&[nodes, each], 8) && fits(&[each], 8) && fits(&[nodes], 6));
    assert!(fits(&["trainer.n_gpus_per_node=${trainer.nnodes}", nodes], 4));
    // Without other keys, they are reported and cause no error.
    assert_eq!(keys(&loaded(&[nodes, each]).started_as(1).unwrap()), ["trainer.nnodes", "trainer.n_gpus_per_node"]);
    assert!(keys(&loaded(&[nodes, each]).started_as(8).unwrap()).is_empty());
    for (overrides, started) in
        [(&[nodes, each][..], 4), (&[each], 6), (&[nodes], 3), (&["trainer.nnodes=0"], 2), (&["trainer.nnodes='3'"], 2)]
    {
        let error = loaded(overrides).started_as(started).unwrap_err().to_string();
        assert!(error.contains(&format!("but {started} processes were started")), "{error}");
        assert!(error.contains(&overrides[0].replace('\'', "")), "{error}");
    }
}
