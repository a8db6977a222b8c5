//! Algorithms of 2026 in TRL, OpenRLHF, SkyRL, prime-rl and slime, compared with `algorithms-2026.json`: what the functions of these
//! libraries returned. `ENTRIES` in a file per subject says how an algorithm is computed here; [`entry::TABLES`] lists the files.

mod a2po;
mod batches;
mod case;
mod corrections;
mod distillation;
mod echo;
mod entry;
mod estimators;
mod not_yet;
mod policy_losses;
mod preferences;
mod terms;
mod uld;
mod walk;

pub(crate) use entry::covers;
