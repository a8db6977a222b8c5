//! Checks of [`SftConfig`] that its types cannot express.

use super::data::Truncation;
use super::loadable::Schema;
use super::place::Place;
use super::sft::SftConfig;
use super::trainer::ResumeMode;
use super::validate::template_date;
use crate::config::{Kind, Report};

impl Schema for SftConfig {
    const KIND: Kind = Kind::Sft;

    fn places(&mut self) -> Vec<Place<'_>> {
        self.all_places()
    }

    fn validate(&self, report: &mut Report) {
        sft(self, report);
    }
}

pub fn sft(config: &SftConfig, report: &mut Report) {
    let (data, trainer) = (&config.data, &config.trainer);
    if data.truncation == Truncation::Middle {
        report.wrong("data.truncation", "an example cannot be cut in its middle", "use error, left or right");
    }
    if trainer.resume_mode == ResumeMode::ResumePath && trainer.resume_from_path.is_none() {
        let help = "write trainer.resume_from_path=…/global_step_N";
        report.wrong("trainer.resume_from_path", "`trainer.resume_mode=resume_path` needs `trainer.resume_from_path`", help);
    }
    template_date(data.chat_template_date.as_deref(), report);
    config.optim.optim().validate("optim", report);
    config.model.lora().validate(config.model.init, report);
    micro_batches(config, report);
}

fn micro_batches(config: &SftConfig, report: &mut Report) {
    let data = &config.data;
    if data.use_dynamic_bsz {
        let (budget, longest) = (data.max_token_len_per_gpu, data.max_length);
        if budget < longest {
            let message = format!("`data.max_token_len_per_gpu` is {budget}, but one example may have {longest} tokens");
            report.wrong("data.max_token_len_per_gpu", message, format!("write data.max_token_len_per_gpu={longest} or more"));
        }
    }
}
