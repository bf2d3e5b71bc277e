"""The shrunken V4.1 configs. Each exercises rules the others do not; `roles` alone touches all of them.

roles    two ratio-2 owners (the nearest-source rule), candidates that bite, an index source inside the ratio-1 half
         that is not a kv source, Engram on a window-only and on a compressed layer, two draft stages
plain    no Engram, so that both independent implementations run all of it; softer limits; three index sources that
         reuse one kv source; one draft stage
mixed    three ratio-2 owners and one ratio-1 owner, Engram on three layers with other n-gram sizes, top-3 of 12
         experts, no YaRN, another routed scale, two shards
wide     the released head sizes (512 wide rows, rope 64, index 128) on few layers, window 32
"""

YARN = dict(rope_type="yarn", factor=16, beta_fast=32, beta_slow=1, original_max_position_embeddings=65536)

BASE = dict(
    model_type="deepseek_v41_text",
    vocab_size=320,
    num_key_value_heads=1,
    n_shared_experts=1,
    scoring_func="sqrtsoftplus",
    topk_method="noaux_tc",
    norm_topk_prob=True,
    routed_scaling_factor=1.5,
    hidden_act="silu",
    rms_norm_eps=1e-20,
    attention_bias=False,
    attention_dropout=0.0,
    initializer_range=0.02,
    use_cache=True,
    tie_word_embeddings=False,
    max_position_embeddings=1048576,
    rope_theta=10000.0,
    compress_rope_theta=160000.0,
    rope_scaling=YARN,
    hc_mult=4,
    hc_sinkhorn_iters=20,
    hc_eps=1e-6,
    engram_vocab_size=64,
    engram_max_ngram_size=4,
    engram_n_heads=2,
    engram_head_dim=32,
    engram_pad_token_id=2,
    dspark_block_size=5,
    dspark_noise_token_id=319,
    dspark_markov_rank=32,
    dspark_n_routed_experts=4,
    dspark_num_experts_per_tok=2,
)

ROLES = dict(
    BASE, hidden_size=128, num_hidden_layers=10, num_attention_heads=4, head_dim=64, qk_rope_head_dim=16,
    q_lora_rank=64, o_groups=2, o_lora_rank=32, moe_intermediate_size=64, n_routed_experts=8, num_experts_per_tok=2,
    swiglu_limit=1.0, sliding_window=16, compress_ratios=[0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0],
    kv_source_layer_ids=[2, 4, 6], index_source_layer_ids=[2, 4, 6, 8], index_n_heads=16, index_head_dim=32,
    index_topk=16, candidate_source_layer_id=6, candidate_topk_blocks=3, candidate_block_size=8,
    engram_layer_ids=[1, 4], num_nextn_predict_layers=2, dspark_target_layer_ids=[7, 8, 9])

PLAIN = dict(
    BASE, hidden_size=64, num_hidden_layers=8, num_attention_heads=8, head_dim=32, qk_rope_head_dim=8,
    q_lora_rank=32, o_groups=4, o_lora_rank=32, moe_intermediate_size=32, n_routed_experts=6, num_experts_per_tok=2,
    swiglu_limit=10.0, sliding_window=12, compress_ratios=[0, 2, 2, 1, 1, 1, 1, 1, 0], kv_source_layer_ids=[1, 3],
    index_source_layer_ids=[1, 3, 4, 6], index_n_heads=24, index_head_dim=32, index_topk=12,
    candidate_source_layer_id=3, candidate_topk_blocks=5, candidate_block_size=4, engram_layer_ids=[],
    num_nextn_predict_layers=1, dspark_target_layer_ids=[4, 5, 7])

MIXED = dict(
    BASE, hidden_size=96, num_hidden_layers=9, num_attention_heads=6, head_dim=64, qk_rope_head_dim=32,
    q_lora_rank=32, o_groups=3, o_lora_rank=32, moe_intermediate_size=32, n_routed_experts=12,
    num_experts_per_tok=3, swiglu_limit=0.5, routed_scaling_factor=2.5, sliding_window=20,
    compress_ratios=[2, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0], kv_source_layer_ids=[0, 2, 3, 5],
    index_source_layer_ids=[0, 2, 3, 4, 5, 7], index_n_heads=16, index_head_dim=64, index_topk=20,
    candidate_source_layer_id=5, candidate_topk_blocks=6, candidate_block_size=4, engram_layer_ids=[0, 3, 6],
    engram_vocab_size=40, engram_max_ngram_size=3, engram_n_heads=3, num_nextn_predict_layers=2,
    dspark_target_layer_ids=[6, 7, 8], compress_rope_theta=40000.0, rope_theta=5000.0,
    rope_scaling=dict(YARN, factor=4, original_max_position_embeddings=4096))

WIDE = dict(
    BASE, hidden_size=64, num_hidden_layers=5, num_attention_heads=4, head_dim=512, qk_rope_head_dim=64,
    q_lora_rank=32, o_groups=2, o_lora_rank=32, moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2,
    swiglu_limit=10.0, sliding_window=32, compress_ratios=[0, 2, 1, 1, 1, 0], kv_source_layer_ids=[1, 2],
    index_source_layer_ids=[1, 2, 4], index_n_heads=16, index_head_dim=128, index_topk=32,
    candidate_source_layer_id=2, candidate_topk_blocks=5, candidate_block_size=8, engram_layer_ids=[0],
    num_nextn_predict_layers=1, dspark_target_layer_ids=[2, 3, 4])

# name -> (config, seed of the weights, number of shards)
CONFIGS = {"roles": (ROLES, 41, 1), "plain": (PLAIN, 42, 1), "mixed": (MIXED, 43, 2), "wide": (WIDE, 44, 1)}


def top_level(text, tokens):
    """The released file's nesting: ids, quantisation and the two sub-configs."""
    return dict(
        architectures=["DeepseekV41ForCausalLM"], model_type="deepseek_v41", dtype="bfloat16", bos_token_id=0,
        eos_token_id=1, pad_token_id=2, image_token_id=tokens["image"], text_config=text, vision_config=None,
        quantization_config=dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[32, 32],
                                 scale_fmt="ue8m0", expert_dtype="fp4"))
