"""Functions of ATen that are measured, by kind: made of the table in src/operators/measured_kind.cc, whose test
compares the two."""

KINDS = {
    "gemm": ("mm", "addmm", "bmm", "baddbmm"),
    "convolution": ("convolution", "convolution_backward"),
    "attention": ("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward"),
    "softmax": ("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"),
    "layer_norm": ("native_layer_norm", "native_layer_norm_backward"),
    "batch_norm": ("native_batch_norm", "native_batch_norm_backward"),
    "reduction": ("sum", "mean", "nll_loss_forward", "nll_loss_backward"),
    "copy": ("copy_",),
    "gather": ("embedding", "embedding_dense_backward"),
    "fill": ("zero_", "fill_", "bernoulli_"),
    "pooling": ("max_pool2d_with_indices", "avg_pool2d", "max_pool2d_with_indices_backward", "avg_pool2d_backward"),
}
