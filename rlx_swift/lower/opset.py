"""The operations of MIL and their parameters, opset by opset: one table. Knows nothing of graphs or files.

A line is `op parameters`, and an indented line goes on with the one above. `@n` behind an op or parameter is
the opset CoreML<n> that brought it (5 if not given); a line `op@n` replaces the op's earlier line from that
opset on. `name` must be given, and `name=value` too, since Core ML knows no defaults: `value` is what
coremltools gives it. `name?` may be left out, and `name?=value` is one of these that we always write.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache

_FIRST = 5
_UNARY = """abs acos asin atan atanh ceil cos cosh erf exp exp2 floor identity logical_not non_zero relu relu6 round
shape sigmoid sign silu sin sinh softplus softsign sqrt square tan tanh"""
_BINARY = """add equal floor_div greater greater_equal less less_equal logical_and logical_or logical_xor maximum
minimum mod mul not_equal pow real_div sub"""
_REDUCTIONS = """reduce_l1_norm reduce_l2_norm reduce_log_sum reduce_log_sum_exp reduce_max reduce_mean reduce_min
reduce_prod reduce_sum reduce_sum_square"""
_REST = """
const val
cast x dtype
clip x alpha beta
inverse x epsilon=1e-4
log x epsilon=1e-45
rsqrt x epsilon=1e-12
threshold x alpha
select cond a b
clamped_relu x alpha beta
elu x alpha
gelu x mode='EXACT'
leaky_relu x alpha
linear_activation x alpha beta
prelu x alpha
scaled_tanh x alpha beta
sigmoid_hard x alpha beta
softmax x axis=-1
softplus_parametric x alpha beta
thresholded_relu x alpha
matmul x y transpose_x=False transpose_y=False
linear x weight bias?
einsum values equation
scaled_dot_product_attention@8 query key value attn_mask?
conv x weight bias? strides pad_type='valid' pad dilations groups=1
conv_quantized x weight bias? quantization_type nbits quant_scale quant_bias strides pad_type='valid' pad dilations
    groups=1
conv_transpose x weight bias? pad output_shape? pad_type='valid' strides dilations groups=1
max_pool x kernel_sizes strides pad_type pad ceil_mode=False
l2_pool x kernel_sizes strides pad_type pad ceil_mode=False
avg_pool x kernel_sizes strides pad_type pad ceil_mode=False exclude_padding_from_average=False
batch_norm x mean variance gamma? beta? epsilon=1e-5
instance_norm x gamma? beta? epsilon=1e-5
l2_norm x epsilon=1e-6
layer_norm x axes? gamma? beta? epsilon=1e-5
local_response_norm x size alpha=1e-4 beta=0.75 k=1.0
reduce_argmax x axis=-1 keep_dims=False output_dtype@7='int32'
reduce_argmin x axis=-1 keep_dims=False output_dtype@7='int32'
gather x indices axis=0 batch_dims@6?=0 validate_indices@7=False
gather_along_axis x indices axis=0 validate_indices@7=False
gather_nd x indices batch_dims@6?=0 validate_indices@7=False
scatter data indices updates axis=0 mode='add' validate_indices@7=False
scatter_along_axis data indices updates axis=0 mode='add' validate_indices@7=False
scatter_nd data indices updates mode='add' validate_indices@7=False
reshape x shape
reshape_like@6 x ref_tensors begins ends end_masks
transpose x perm
expand_dims x axes
squeeze x axes?
concat values axis interleave=False
split x num_splits? split_sizes? axis
stack values axis
slice_by_index x begin end stride? begin_mask? end_mask? squeeze_mask?
slice_by_size x begin size
slice_update@8 x update begin end stride? begin_mask? end_mask? squeeze_mask?
pad x pad mode='constant' constant_val=0.0
tile x reps
fill shape value=0.0
fill_like@6 ref_tensor value=0.0
reverse x axes?
reverse_sequence x lengths seq_axis=0 batch_axis=0
flatten2d x axis=1
depth_to_space x block_size
space_to_depth x block_size
pixel_shuffle x upscale_factor
pixel_unshuffle@6 x downscale_factor
space_to_batch x block_shape paddings
batch_to_space x block_shape crops
range_1d end start step
sliding_windows x axis size stride=1
one_hot indices one_hot_vector_size axis=-1 on_value=1 off_value=0
cumsum x axis=0 exclusive=False reverse=False
band_part x lower=-1 upper=-1
topk x k=1 axis=-1 ascending=False sort@6=True return_indices@6=True output_indices_dtype@7?
argsort x axis=-1 ascending=False
non_maximum_suppression boxes scores iou_threshold score_threshold max_boxes per_class_suppression=False
non_maximum_suppression@7 boxes scores iou_threshold max_boxes per_class_suppression=False
classify probabilities classes
cond pred
while_loop loop_vars
make_list init_length? dynamic_length? elem_shape dtype?
list_length ls
list_read ls index
list_write ls index value
list_gather ls indices
list_scatter ls indices value
read_state@8 input
write_state@8 input data
upsample_nearest_neighbor x scale_factor_height=1 scale_factor_width=1
upsample_bilinear x scale_factor_height=1 scale_factor_width=1 align_corners=True half_pixel_centers@6?
resize_bilinear x target_size_height=1 target_size_width=1 sampling_mode='DEFAULT'
resize_nearest_neighbor x target_size_height target_size_width
resize@7 x shape resized_dims interpolation_mode='LINEAR' sampling_mode='DEFAULT'
crop x crop_height crop_width
crop_resize x roi target_height target_width normalized_coordinates spatial_scale box_coordinate_mode sampling_mode
    pad_value@6
crop_resize@7 x boxes box_indices? target_height target_width normalized_coordinates spatial_scale
    box_coordinate_mode sampling_mode pad_value
resample x coordinates sampling_mode padding_mode padding_value coordinates_mode align_corners
affine x transform_matrix output_height output_width sampling_mode padding_mode padding_value coordinates_mode
    align_corners
lstm x initial_h initial_c weight_ih weight_hh bias? peephole? weight_ih_back? weight_hh_back? bias_back?
    peephole_back? direction output_sequence recurrent_activation cell_activation activation clip?
gru x initial_h weight_ih weight_hh bias? direction output_sequence recurrent_activation activation reset_after@8?
    input_bias@8?
rnn x initial_h weight_ih weight_hh bias? direction output_sequence activation
random_bernoulli shape prob seed
random_categorical x mode size seed
random_normal shape mean stddev seed
random_uniform shape low high seed
quantize@7 input zero_point? scale axis? output_dtype
dequantize@7 input zero_point? scale axis?
constexpr_affine_dequantize@6 quantized_data zero_point scale axis
constexpr_cast@6 source_val output_dtype
constexpr_lut_to_dense@6 indices lut shape
constexpr_lut_to_dense@8 indices lut vector_axis?
constexpr_lut_to_sparse@8 indices_mask indices_nonzero_data lut vector_axis?
constexpr_sparse_to_dense@6 nonzero_data mask shape
constexpr_sparse_to_dense@8 nonzero_data mask
constexpr_blockwise_shift_scale@8 data scale offset?
constexpr_sparse_blockwise_shift_scale@8 data_mask nonzero_data scale offset?
"""




@dataclass(frozen=True)
class Signature:
    """The parameters of one op in one opset: which must be given, which may be, and values for those left out."""

    required: frozenset[str]
    known: frozenset[str]
    defaults: tuple[tuple[str, object], ...]


@cache
def signatures(opset: int) -> dict[str, Signature]:
    """Every op of the opset CoreML<opset>."""
    lines = _REST.replace("\n    ", " ").strip().splitlines()
    lines += [f"{op} x" for op in _UNARY.split()] + [f"{op} x y" for op in _BINARY.split()]
    lines += [f"{op} x axes? keep_dims=False" for op in _REDUCTIONS.split()]
    table = {}
    for line in lines:
        head, *parameters = line.split()
        op, since = _since(head)
        if since <= opset:
            table[op] = _signature(parameters, opset)
    return table


def first_opset(op: str) -> int | None:
    """The opset CoreML<n> that brought an op; None when none has it."""
    return next((n for n in range(_FIRST, 10) if op in signatures(n)), None)


def _since(word: str) -> tuple[str, int]:
    name, _, since = word.partition("@")
    return name, int(since or _FIRST)


def _signature(parameters: list[str], opset: int) -> Signature:
    required, known, defaults = [], [], []
    for parameter in parameters:
        head, _, value = parameter.partition("=")
        optional = head.endswith("?")
        name, since = _since(head.removesuffix("?"))
        if since > opset:
            continue
        known.append(name)
        if not optional:
            required.append(name)
        if value:
            defaults.append((name, ast.literal_eval(value)))
    return Signature(frozenset(required), frozenset(known), tuple(defaults))
