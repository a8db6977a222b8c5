//! The trainer classes of TRL, and the order of their arguments.

use crate::from_trl::stages::TRAINERS;
use crate::python::LibraryCall;

/// A trainer class.
pub(super) struct TrainerClass {
    pub class: &'static str,
    /// TRL's name of the stage.
    pub stage: &'static str,
    /// Positional arguments, separated by spaces.
    positional: &'static str,
}

const RL: &str = "model reward_funcs args train_dataset eval_dataset processing_class reward_processing_classes callbacks \
    optimizers peft_config";
const STAGE: &str = "model args data_collator train_dataset eval_dataset processing_class";
const TEACHER: &str = "model teacher_model args data_collator train_dataset eval_dataset processing_class";
const REFERENCE: &str = "model ref_model args data_collator train_dataset eval_dataset processing_class";
/// RLOO and PPO before they took reward functions.
const ORIGINAL: &str = "args processing_class model ref_model reward_model train_dataset";

const CLASSES: &[TrainerClass] = &[
    TrainerClass { class: "GRPOTrainer", stage: "grpo", positional: RL },
    TrainerClass { class: "RLOOTrainer", stage: "rloo", positional: RL },
    TrainerClass { class: "PPOTrainer", stage: "ppo", positional: ORIGINAL },
    TrainerClass { class: "PPOv2Trainer", stage: "ppo", positional: ORIGINAL },
    TrainerClass { class: "RLOOv2Trainer", stage: "rloo", positional: ORIGINAL },
    TrainerClass { class: "SFTTrainer", stage: "sft", positional: STAGE },
    TrainerClass { class: "UnslothTrainer", stage: "sft", positional: STAGE },
    TrainerClass { class: "DPOTrainer", stage: "dpo", positional: REFERENCE },
    TrainerClass {
        class: "KTOTrainer",
        stage: "kto",
        positional: "model ref_model args train_dataset eval_dataset processing_class data_collator",
    },
    TrainerClass { class: "ORPOTrainer", stage: "orpo", positional: STAGE },
    TrainerClass { class: "CPOTrainer", stage: "cpo", positional: STAGE },
    TrainerClass { class: "RewardTrainer", stage: "reward", positional: STAGE },
    TrainerClass { class: "GKDTrainer", stage: "gkd", positional: TEACHER },
    TrainerClass { class: "IWOPDTrainer", stage: "iw_opd", positional: TEACHER },
    TrainerClass { class: "GOLDTrainer", stage: "gold", positional: TEACHER },
    TrainerClass {
        class: "OnlineDPOTrainer",
        stage: "online_dpo",
        positional: "model ref_model reward_funcs reward_model judge args data_collator train_dataset eval_dataset",
    },
    TrainerClass {
        class: "A2POTrainer",
        stage: "a2po",
        positional: "model reward_funcs args train_dataset eval_dataset processing_class",
    },
    TrainerClass { class: "PRMTrainer", stage: "prm", positional: STAGE },
    TrainerClass { class: "BCOTrainer", stage: "bco", positional: REFERENCE },
    TrainerClass { class: "TPOTrainer", stage: "tpo", positional: STAGE },
    TrainerClass { class: "XPOTrainer", stage: "xpo", positional: STAGE },
    TrainerClass { class: "NashMDTrainer", stage: "nash_md", positional: STAGE },
    TrainerClass { class: "DistillationTrainer", stage: "distillation", positional: STAGE },
    TrainerClass { class: "MiniLLMTrainer", stage: "minillm", positional: STAGE },
    TrainerClass {
        class: "SDFTTrainer",
        stage: "sdft",
        positional: "model args train_dataset eval_dataset processing_class callbacks optimizers peft_config",
    },
    TrainerClass { class: "SDPOTrainer", stage: "sdpo", positional: RL },
    TrainerClass { class: "AsyncGRPOTrainer", stage: "async_grpo", positional: RL },
];

impl TrainerClass {
    pub(super) fn is_supported(&self) -> bool {
        TRAINERS.iter().any(|trainer| trainer.name == self.stage)
    }

    /// Returns the names of the positional arguments of a call.
    pub(super) fn positional(&self, call: &LibraryCall) -> Vec<&'static str> {
        let is_old =
            ["config", "policy", "ref_policy", "reward_model"].iter().any(|name| call.argument(name, usize::MAX).is_some());
        let names = if self.stage == "rloo" && is_old { ORIGINAL } else { self.positional };
        names.split(' ').collect()
    }
}

/// Returns the class of a trainer's call. A class of another library with the same name counts too.
pub(super) fn find(call: &LibraryCall) -> Option<&'static TrainerClass> {
    CLASSES.iter().find(|class| call.receiver.is_none() && class.class == call.name())
}

/// Returns the present name of a trainer's argument.
pub(super) fn present_name(name: &str) -> &str {
    match name {
        "config" | "training_args" => "args",
        "policy" => "model",
        "ref_policy" => "ref_model",
        "tokenizer" => "processing_class",
        name => name,
    }
}
