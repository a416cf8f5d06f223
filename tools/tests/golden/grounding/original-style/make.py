"""Makes model.onnx: the inputs and outputs of IDEA-Research's export, and no network. Its logits repeat
what it was told about the text, so that a test can read it: position_ids, token_type_ids,
attention_mask, and then the rows of text_token_mask; its boxes repeat the picture's mean.

    python make.py        (needs the package onnx)
"""

from pathlib import Path

from onnx import TensorProto as T
from onnx import checker, helper, save

QUERY = [1, "length"]


def node(kind, inputs, output, **settings):
    return helper.make_node(kind, inputs, [output], **settings)


def number(name, values):
    return helper.make_tensor(name, T.INT64, [len(values)], values)


nodes = []
for name in ["position_ids", "token_type_ids", "attention_mask"]:
    nodes += [
        node("Cast", [name], f"{name}_float", to=T.FLOAT),
        node("Unsqueeze", [f"{name}_float", "one"], f"{name}_row"),
    ]
nodes += [
    node("Cast", ["text_token_mask"], "mask_rows", to=T.FLOAT),
    node("Concat", ["position_ids_row", "token_type_ids_row", "attention_mask_row", "mask_rows"], "rows", axis=1),
    node("Shape", ["input_ids"], "id_shape"),
    node("Gather", ["id_shape", "one"], "length"),
    node("Sub", ["columns", "length"], "missing"),
    node("Concat", ["zeros", "missing"], "padding", axis=0),
    node("Pad", ["rows", "padding", "nothing"], "logits"),
    node("ReduceMean", ["img"], "mean", keepdims=0),
    node("Shape", ["rows"], "row_shape"),
    node("Gather", ["row_shape", "one"], "queries"),
    node("Concat", ["one", "queries", "four"], "box_shape", axis=0),
    node("Expand", ["mean", "box_shape"], "boxes"),
]
given = [
    helper.make_tensor_value_info("img", T.FLOAT, ["batch", 3, "height", "width"]),
    helper.make_tensor_value_info("input_ids", T.INT64, QUERY),
    helper.make_tensor_value_info("attention_mask", T.BOOL, QUERY),
    helper.make_tensor_value_info("position_ids", T.INT64, QUERY),
    helper.make_tensor_value_info("token_type_ids", T.INT64, QUERY),
    helper.make_tensor_value_info("text_token_mask", T.BOOL, [1, "length", "length"]),
]
gives = [
    helper.make_tensor_value_info("logits", T.FLOAT, [1, "queries", 256]),
    helper.make_tensor_value_info("boxes", T.FLOAT, [1, "queries", 4]),
]
constants = [
    number("one", [1]),
    number("four", [4]),
    number("columns", [256]),
    number("zeros", [0, 0, 0, 0, 0]),
    helper.make_tensor("nothing", T.FLOAT, [], [-100.0]),
]
graph = helper.make_graph(nodes, "echo", given, gives, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
checker.check_model(model, full_check=True)
save(model, Path(__file__).parent / "model.onnx")
