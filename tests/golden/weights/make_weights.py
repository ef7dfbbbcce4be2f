#!/usr/bin/env python3
"""Makes the files of this folder. Needs: gguf, numpy, safetensors, transformers, torch (make parity).

tinyllama/            seeded Llama as a Hugging Face folder: one safetensors file in float32
tinyllama-sharded/    the same in bfloat16, in two shards with an index
tinyllama-f32.gguf    the same in float32, q/k rows permuted as llama.cpp's converter stores them
blocks.json           blocks of each quantised type and what the gguf package makes of them
"""
import json
import pathlib
import shutil

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16,
    "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 266, "hidden_act": "silu", "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0, "rope_scaling": None, "max_position_embeddings": 4096,
    "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "torch_dtype": "float32"}
GGUF_NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm"}


def shapes():
    d, f, v = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["vocab_size"]
    kv = d // CONFIG["num_attention_heads"] * CONFIG["num_key_value_heads"]
    result = {"model.embed_tokens.weight": (v, d), "model.norm.weight": (d,),
              "lm_head.weight": (v, d)}
    for i in range(CONFIG["num_hidden_layers"]):
        p = f"model.layers.{i}."
        result |= {p + "self_attn.q_proj.weight": (d, d), p + "self_attn.k_proj.weight": (kv, d),
                   p + "self_attn.v_proj.weight": (kv, d), p + "self_attn.o_proj.weight": (d, d),
                   p + "mlp.gate_proj.weight": (f, d), p + "mlp.up_proj.weight": (f, d),
                   p + "mlp.down_proj.weight": (d, f), p + "input_layernorm.weight": (d,),
                   p + "post_attention_layernorm.weight": (d,)}
    return result


def tensors():
    """Element i of the t-th tensor by name is 0.3*sin(0.7*i+1.9*t+0.5); a norm is 1+0.1*sin."""
    result = {}
    for t, (name, shape) in enumerate(sorted(shapes().items())):
        wave = np.sin(0.7 * np.arange(np.prod(shape)) + 1.9 * t + 0.5)
        values = 1 + 0.1 * wave if len(shape) == 1 else 0.3 * wave
        result[name] = values.reshape(shape).astype(np.float32)
    return result


def write_folder(weights):
    folder = HERE / "tinyllama"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    save_file({n: torch.from_numpy(w) for n, w in weights.items()}, folder / "model.safetensors",
              metadata={"format": "pt"})


def write_shards(weights):
    folder = HERE / "tinyllama-sharded"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    config = {k: v for k, v in CONFIG.items() if k not in ("rope_theta", "rope_scaling",
                                                            "torch_dtype")}
    config |= {"dtype": "bfloat16",
               "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    names = sorted(weights)
    weight_map, total = {}, 0
    for shard, part in enumerate((names[:10], names[10:]), 1):
        file = f"model-{shard:05}-of-00002.safetensors"
        data = {n: torch.from_numpy(weights[n]).to(torch.bfloat16) for n in part}
        save_file(data, folder / file, metadata={"format": "pt"})
        weight_map |= {n: file for n in part}
        total += sum(t.numel() * 2 for t in data.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def gguf_name(name):
    if not name.startswith("model.layers."):
        return {"model.embed_tokens.weight": "token_embd.weight",
                "model.norm.weight": "output_norm.weight",
                "lm_head.weight": "output.weight"}[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[rest.removesuffix('.weight')]}.weight"


def permute(weight, heads):
    """Half-rotation order to interleaved pairs, per head."""
    rows, columns = weight.shape
    return (weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2)
            .reshape(rows, columns))


def write_gguf(weights):
    heads, kv_heads = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"]
    writer = gguf.GGUFWriter(HERE / "tinyllama-f32.gguf", "llama")
    writer.add_name("tinyllama")
    writer.add_block_count(CONFIG["num_hidden_layers"])
    writer.add_context_length(CONFIG["max_position_embeddings"])
    writer.add_embedding_length(CONFIG["hidden_size"])
    writer.add_feed_forward_length(CONFIG["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(CONFIG["hidden_size"] // heads)
    writer.add_rope_freq_base(CONFIG["rope_theta"])
    writer.add_layer_norm_rms_eps(CONFIG["rms_norm_eps"])
    writer.add_vocab_size(CONFIG["vocab_size"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_array("test.floats", [0.5, -1.5])
    writer.add_array("test.integers", [-1, 2, 300])
    writer.add_array("test.strings", ["a", "", "\u00e9"])
    writer.add_array("test.bools", [True, False])
    writer.add_key_value("test.uint64", 1 << 40, GGUFValueType.UINT64)
    writer.add_key_value("test.float64", 0.1, GGUFValueType.FLOAT64)
    for name, weight in weights.items():
        if name.endswith("q_proj.weight"):
            weight = permute(weight, heads)
        elif name.endswith("k_proj.weight"):
            weight = permute(weight, kv_heads)
        writer.add_tensor(gguf_name(name), weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_blocks():
    generator = np.random.default_rng(7)
    values = generator.standard_normal((2, 64)).astype(np.float32) * np.float32(3)
    values[0, 5] = 0
    blocks = {}
    for kind in (Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1):
        packed = gguf.quants.quantize(values, kind)
        plain = gguf.quants.dequantize(packed, kind)
        blocks[kind.name] = {"bytes_hex": packed.tobytes().hex(),
                             "values": [float(x) for x in plain.reshape(-1)]}
    (HERE / "blocks.json").write_text(json.dumps(blocks) + "\n")


if __name__ == "__main__":
    made = tensors()
    write_folder(made)
    write_shards(made)
    write_gguf(made)
    write_blocks()
