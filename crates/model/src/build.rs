//! Builds a network from its configuration and a source of parameters.

use std::collections::BTreeMap;

use anyhow::Result;
use burn::module::Param;
use burn::tensor::{Device, Tensor};

use super::config::{DecoderConfig, HeadKind, NormKind, Positions, QkNorm, Residual};
use super::decoder::{Attention, Block, Decoder, Embedding, Linear, Mlp, Norm, Trunk};
use super::experts::{Experts, FeedForward, Mixture, MixtureConfig};
use super::latent_attention::LatentAttention;
use super::latent_shape::LatentShape;
use super::layer_inputs::TABLE;
use super::linear_attention::{ConvKernel, DeltaNet, DeltaNetShape, Mamba, MambaNorm, MambaShape, RecurrentKind, ShortConv};
use super::matrix::Matrix;
use super::nf4::{FourBit, Nf4Matrix, Nf4Weight};
use super::ops::tensor_from_vec;
use super::weights::FreshHead;
use burnish_util::rng::Stream;

/// A source of parameters: maps (name, shape) to the values, row-major.
pub(crate) type ParameterSource<'a> = dyn FnMut(&str, &[usize]) -> Result<Vec<f32>> + 'a;

impl Decoder {
    /// Builds the network from a source of parameters.
    pub fn build(config: &DecoderConfig, device: &Device, values: &mut ParameterSource) -> Result<Self> {
        Builder { c: config, device, values }.decoder()
    }

    /// Builds a network with matrices drawn from Normal(0, initializer_range), zero biases, and norms that keep the scale. If
    /// `fresh_head` is given, it provides the values of the head.
    pub fn random(config: &DecoderConfig, seed: u64, fresh_head: Option<&FreshHead>, device: &Device) -> Result<Self> {
        let unit = match config.norm {
            NormKind::Rms { offset } => 1.0 - offset as f32,
            _ => 1.0,
        };
        let mut parameter = 0;
        Self::build(config, device, &mut |name, shape| {
            parameter += 1;
            if let Some(fresh) = fresh_head.filter(|_| name.starts_with("lm_head.")) {
                return Ok(fresh(name, shape));
            }
            let n: usize = shape.iter().product();
            let mut stream = Stream::new(seed, "init", &[parameter]);
            if name.ends_with(".self_attn.sinks") {
                return Ok((0..n).map(|_| (stream.normal() * config.initializer_range) as f32).collect());
            }
            if name.ends_with(".linear_attn.a_log") {
                return Ok((0..n).map(|_| (0.01 + 15.99 * stream.uniform()).ln() as f32).collect());
            }
            if name.ends_with(".mamba.a_log") {
                return Ok((1..=n).map(|head| (head as f32).ln()).collect());
            }
            if name.ends_with(".dt_bias") || name.ends_with(".linear_attn.norm.weight") {
                return Ok(vec![1.0; n]);
            }
            Ok(match (shape.len(), name.ends_with("bias")) {
                (2.., false) => (0..n).map(|_| (stream.normal() * config.initializer_range) as f32).collect(),
                (_, true) => vec![0.0; n],
                (_, false) => vec![unit; n],
            })
        })
    }
}

struct Builder<'a> {
    c: &'a DecoderConfig,
    device: &'a Device,
    values: &'a mut ParameterSource<'a>,
}

impl Builder<'_> {
    fn decoder(mut self) -> Result<Decoder> {
        let c = self.c;
        let embed_tokens = Embedding { weight: self.matrix("model.embed_tokens.weight", c.vocab_size, c.hidden_size)? };
        let embed_positions = match c.positions {
            Positions::Rotary(_) => None,
            Positions::Learned => {
                let weight = self.matrix("model.embed_positions.weight", c.max_position_embeddings, c.hidden_size)?;
                Some(Embedding { weight })
            }
        };
        let layers = (0..c.num_hidden_layers).map(|i| self.block(&format!("model.layers.{i}"), i)).collect::<Result<_>>()?;
        let norm = self.norm("model.norm", c.hidden_size)?;
        let mut trunk = Trunk {
            embed_tokens,
            embed_positions,
            embed_tokens_per_layer: None,
            per_layer_model_projection: None,
            per_layer_projection_norm: None,
            layers,
            norm,
        };
        if let Some(inputs) = c.layer_inputs {
            let all = c.layer_inputs_width();
            trunk.embed_tokens_per_layer = Some(Embedding { weight: self.matrix(TABLE, inputs.vocab_size, all)? });
            trunk.per_layer_model_projection =
                Some(self.linear("model.per_layer_model_projection", all, c.hidden_size, false)?);
            trunk.per_layer_projection_norm = Some(self.norm("model.per_layer_projection_norm", inputs.width)?);
        }
        let lm_head = match c.head {
            HeadKind::Classifier { bias, labels, .. } => Some(self.head("lm_head", labels, c.hidden_size, bias)?),
            HeadKind::Language if c.tie_word_embeddings => None,
            HeadKind::Language => Some(self.head("lm_head", c.vocab_size, c.hidden_size, false)?),
        };
        Ok(Decoder { model: trunk, lm_head })
    }

    fn block(&mut self, at: &str, layer: usize) -> Result<Block> {
        let (c, h, residual) = (self.c, self.c.hidden_size, self.c.residual);
        let recurrent = c.recurrent(layer);
        Ok(Block {
            self_attn: match (c.has_attention(layer), c.latent) {
                (true, None) => Some(self.attention(&format!("{at}.self_attn"), layer)?),
                _ => None,
            },
            latent_attn: match (c.has_attention(layer), c.latent) {
                (true, Some(shape)) => Some(self.latent_attention(&format!("{at}.latent_attn"), shape)?),
                _ => None,
            },
            linear_attn: match recurrent {
                Some(RecurrentKind::DeltaNet(shape)) => Some(self.delta_net(&format!("{at}.linear_attn"), shape)?),
                _ => None,
            },
            conv: match recurrent {
                Some(RecurrentKind::ShortConv { kernel, bias }) => Some(self.short_conv(&format!("{at}.conv"), kernel, bias)?),
                _ => None,
            },
            mamba: match recurrent {
                Some(RecurrentKind::Mamba(shape)) => Some(self.mamba(&format!("{at}.mamba"), shape)?),
                _ => None,
            },
            mlp: match c.mixture.as_ref().filter(|mixture| mixture.layers[layer]) {
                Some(mixture) => FeedForward::Mixture(self.mixture(&format!("{at}.mlp"), mixture)?),
                None => FeedForward::Dense(self.mlp(&format!("{at}.mlp"), c.mlp_width(layer))?),
            },
            input_layernorm: self.norm_if(residual.has_input_norm(), &format!("{at}.input_layernorm"), h)?,
            post_attention_layernorm: self.norm_if(residual.has_second_norm(), &format!("{at}.post_attention_layernorm"), h)?,
            pre_feedforward_layernorm: self.norm_if(
                residual == Residual::Sandwich,
                &format!("{at}.pre_feedforward_layernorm"),
                h,
            )?,
            post_feedforward_layernorm: self.norm_if(
                residual.normalises_results(),
                &format!("{at}.post_feedforward_layernorm"),
                h,
            )?,
            per_layer_input_gate: match c.layer_inputs {
                Some(inputs) => Some(self.linear(&format!("{at}.per_layer_input_gate"), inputs.width, h, false)?),
                None => None,
            },
            per_layer_projection: match c.layer_inputs {
                Some(inputs) => Some(self.linear(&format!("{at}.per_layer_projection"), h, inputs.width, false)?),
                None => None,
            },
            post_per_layer_input_norm: self.norm_if(c.layer_inputs.is_some(), &format!("{at}.post_per_layer_input_norm"), h)?,
            layer_scalar: match c.layer_scalars {
                true => Some(self.vector(&format!("{at}.layer_scalar"), 1)?),
                false => None,
            },
        })
    }

    fn mlp(&mut self, at: &str, intermediate: usize) -> Result<Mlp> {
        let (c, h) = (self.c, self.c.hidden_size);
        Ok(Mlp {
            gate_proj: match c.gated {
                true => Some(self.linear(&format!("{at}.gate_proj"), intermediate, h, c.mlp_bias)?),
                false => None,
            },
            up_proj: self.linear(&format!("{at}.up_proj"), intermediate, h, c.mlp_bias)?,
            down_proj: self.linear(&format!("{at}.down_proj"), h, intermediate, c.mlp_bias)?,
            gate_up_lora: None,
        })
    }

    fn mixture(&mut self, at: &str, mixture: &MixtureConfig) -> Result<Mixture> {
        let (h, i, count) = (self.c.hidden_size, mixture.intermediate_size, mixture.experts);
        let gate = self.head(&format!("{at}.gate"), count, h, mixture.router.bias)?;
        let bias = |this: &mut Self, name: &str, width: usize| match mixture.bias {
            true => this.matrix(&format!("{at}.experts.{name}_bias"), count, width).map(Some),
            false => Ok(None),
        };
        let experts = Experts {
            gate_proj: self.matrices(&format!("{at}.experts.gate_proj"), [count, i, h])?,
            up_proj: self.matrices(&format!("{at}.experts.up_proj"), [count, i, h])?,
            down_proj: self.matrices(&format!("{at}.experts.down_proj"), [count, h, i])?,
            gate_proj_bias: bias(self, "gate_proj", i)?,
            up_proj_bias: bias(self, "up_proj", i)?,
            down_proj_bias: bias(self, "down_proj", h)?,
        };
        let shared = mixture.shared.as_ref();
        Ok(Mixture {
            gate,
            e_score_correction_bias: match mixture.router.choice_bias {
                true => Some(self.vector(&format!("{at}.e_score_correction_bias"), count)?),
                false => None,
            },
            experts,
            shared_expert: match shared {
                Some(shared) => Some(self.mlp(&format!("{at}.shared_expert"), shared.intermediate_size)?),
                None => None,
            },
            shared_expert_gate: match shared.filter(|shared| shared.gated) {
                Some(_) => Some(self.linear(&format!("{at}.shared_expert_gate"), 1, h, false)?),
                None => None,
            },
        })
    }

    fn matrices(&mut self, name: &str, shape: [usize; 3]) -> Result<Param<Tensor<3>>> {
        let values = (self.values)(name, &shape)?;
        Ok(Param::from_tensor(tensor_from_vec(values, shape, self.device)))
    }

    fn attention(&mut self, at: &str, layer: usize) -> Result<Attention> {
        let (c, h, shape) = (self.c, self.c.hidden_size, self.c.attention(layer));
        let (q, kv, projections) = (shape.queries(), shape.keys(), shape.kv_projections());
        let has_qk_norm = c.qk_norm != QkNorm::None;
        let [q_norm, k_norm] = if c.qk_norm == QkNorm::AllHeads { [q, kv] } else { [shape.head_dim; 2] };
        Ok(Attention {
            q_proj: self.linear(&format!("{at}.q_proj"), if c.output_gate { 2 * q } else { q }, h, c.qkv_bias)?,
            k_proj: match projections {
                0 => None,
                _ => Some(self.linear(&format!("{at}.k_proj"), kv, h, c.qkv_bias)?),
            },
            v_proj: match projections {
                2 => Some(self.linear(&format!("{at}.v_proj"), kv, h, c.qkv_bias)?),
                _ => None,
            },
            o_proj: self.linear(&format!("{at}.o_proj"), h, q, c.o_bias)?,
            qkv_lora: None,
            q_norm: self.norm_if(has_qk_norm, &format!("{at}.q_norm"), q_norm)?,
            k_norm: self.norm_if(has_qk_norm && projections > 0, &format!("{at}.k_norm"), k_norm)?,
            sinks: match c.attention_sinks {
                true => Some(self.vector(&format!("{at}.sinks"), c.num_attention_heads)?),
                false => None,
            },
        })
    }

    fn latent_attention(&mut self, at: &str, shape: LatentShape) -> Result<LatentAttention> {
        let (c, mut linears) = (self.c, BTreeMap::new());
        for (name, input, output, has_bias) in shape.linears(c.hidden_size, c.num_attention_heads) {
            linears.insert(name, self.linear(&format!("{at}.{name}"), output, input, has_bias && c.qkv_bias)?);
        }
        let mut take = |name| linears.remove(name);
        let [q_proj, q_a_proj, q_b_proj] = ["q_proj", "q_a_proj", "q_b_proj"].map(&mut take);
        let [kv_a_proj_with_mqa, kv_b_proj, o_proj] =
            ["kv_a_proj_with_mqa", "kv_b_proj", "o_proj"].map(|name| take(name).expect("a projection of latent attention"));
        Ok(LatentAttention {
            q_proj,
            q_a_proj,
            q_a_layernorm: match shape.query_rank {
                Some(rank) => Some(self.norm(&format!("{at}.q_a_layernorm"), rank)?),
                None => None,
            },
            q_b_proj,
            kv_a_proj_with_mqa,
            kv_a_layernorm: self.norm(&format!("{at}.kv_a_layernorm"), shape.rank)?,
            kv_b_proj,
            o_proj,
        })
    }

    fn delta_net(&mut self, at: &str, shape: DeltaNetShape) -> Result<DeltaNet> {
        let (h, heads) = (self.c.hidden_size, shape.heads);
        let mut projections = [const { None }; 6];
        let names = ["in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "in_proj_qkvz", "in_proj_ba"];
        for (name, outputs) in shape.projections() {
            let place = names.iter().position(|known| *known == name).expect("a projection of a delta net");
            projections[place] = Some(self.linear(&format!("{at}.{name}"), outputs, h, false)?);
        }
        let [in_proj_qkv, in_proj_z, in_proj_b, in_proj_a, in_proj_qkvz, in_proj_ba] = projections;
        Ok(DeltaNet {
            in_proj_qkv,
            in_proj_z,
            in_proj_b,
            in_proj_a,
            in_proj_qkvz,
            in_proj_ba,
            conv1d: self.kernel(&format!("{at}.conv1d"), heads.width(), shape.kernel, false)?,
            a_log: self.vector(&format!("{at}.a_log"), heads.value_heads)?,
            dt_bias: self.vector(&format!("{at}.dt_bias"), heads.value_heads)?,
            norm: Norm { weight: Some(self.vector(&format!("{at}.norm.weight"), heads.value_dim)?), bias: None },
            out_proj: self.linear(&format!("{at}.out_proj"), h, heads.values(), false)?,
        })
    }

    fn short_conv(&mut self, at: &str, kernel: usize, bias: bool) -> Result<ShortConv> {
        let h = self.c.hidden_size;
        Ok(ShortConv {
            in_proj: self.linear(&format!("{at}.in_proj"), 3 * h, h, bias)?,
            conv: self.kernel(&format!("{at}.conv"), h, kernel, bias)?,
            out_proj: self.linear(&format!("{at}.out_proj"), h, h, bias)?,
        })
    }

    fn mamba(&mut self, at: &str, shape: MambaShape) -> Result<Mamba> {
        let (h, scan) = (self.c.hidden_size, shape.scan);
        Ok(Mamba {
            in_proj: self.linear(&format!("{at}.in_proj"), shape.projected(), h, shape.bias[0])?,
            conv1d: self.kernel(&format!("{at}.conv1d"), scan.width(), shape.kernel, shape.conv_bias)?,
            a_log: self.vector(&format!("{at}.a_log"), scan.heads)?,
            dt_bias: self.vector(&format!("{at}.dt_bias"), scan.heads)?,
            skip: self.vector(&format!("{at}.skip"), scan.heads)?,
            norm: match shape.norm {
                MambaNorm::None => None,
                _ => Some(Norm { weight: Some(self.vector(&format!("{at}.norm.weight"), scan.values())?), bias: None }),
            },
            out_proj: self.linear(&format!("{at}.out_proj"), h, scan.values(), shape.bias[1])?,
        })
    }

    fn kernel(&mut self, name: &str, channels: usize, size: usize, bias: bool) -> Result<ConvKernel> {
        let shape = [channels, 1, size];
        let weight = (self.values)(&format!("{name}.weight"), &shape)?;
        let weight = Param::from_tensor(tensor_from_vec(weight, shape, self.device));
        Ok(ConvKernel { weight, bias: if bias { Some(self.vector(&format!("{name}.bias"), channels)?) } else { None } })
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Param<Tensor<2>>> {
        let values = (self.values)(name, &[rows, columns])?;
        Ok(Param::from_tensor(tensor_from_vec(values, [rows, columns], self.device)))
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<Param<Tensor<1>>> {
        let values = (self.values)(name, &[len])?;
        Ok(Param::from_tensor(tensor_from_vec(values, [len], self.device)))
    }

    /// A projection of a block, whose matrix may be in 4 bits.
    fn linear(&mut self, name: &str, out: usize, input: usize, bias: bool) -> Result<Linear> {
        let weight = match self.c.quantization {
            None => Matrix::Float(self.matrix(&format!("{name}.weight"), out, input)?),
            Some(FourBit { double_quant }) => {
                let values = (self.values)(&format!("{name}.weight"), &[out, input])?;
                Matrix::Nf4(Nf4Weight::new(Nf4Matrix::new(&values, [out, input], double_quant), self.device).into())
            }
        };
        Ok(Linear { weight, bias: self.bias(name, out, bias)?, lora: None })
    }

    /// A head or a router, which are never in 4 bits.
    fn head(&mut self, name: &str, out: usize, input: usize, bias: bool) -> Result<Linear> {
        let weight = Matrix::Float(self.matrix(&format!("{name}.weight"), out, input)?);
        Ok(Linear { weight, bias: self.bias(name, out, bias)?, lora: None })
    }

    fn bias(&mut self, name: &str, out: usize, has: bool) -> Result<Option<Param<Tensor<1>>>> {
        if has { self.vector(&format!("{name}.bias"), out).map(Some) } else { Ok(None) }
    }

    fn norm(&mut self, name: &str, len: usize) -> Result<Norm> {
        let kind = self.c.norm;
        let mut vector_if =
            |has: bool, end: &str| if has { self.vector(&format!("{name}.{end}"), len).map(Some) } else { Ok(None) };
        let weight = vector_if(kind.has_weight(), "weight")?;
        Ok(Norm { weight, bias: vector_if(kind.has_bias(), "bias")? })
    }

    fn norm_if(&mut self, is_present: bool, name: &str, len: usize) -> Result<Option<Norm>> {
        if is_present { self.norm(name, len).map(Some) } else { Ok(None) }
    }
}
