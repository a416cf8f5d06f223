"""Starts llama.cpp's own HTTP server with the tiny model, and runs a command against it.

    python serve.py FOLDER COMMAND ARG…      {url} in an argument becomes the base URL
"""

import pathlib
import subprocess
import sys

import xllamacpp


def main():
    folder = pathlib.Path(sys.argv[1])
    params = xllamacpp.CommonParams()
    params.model.path = str(folder / "model.gguf")
    params.mmproj.path = str(folder / "mmproj.gguf")
    params.mmproj_use_gpu = False
    params.port = 0
    params.n_ctx = 65536
    params.n_predict = 512
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.warmup = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    url = server.listening_address.rstrip("/") + "/v1"
    command = [argument.replace("{url}", url) for argument in sys.argv[2:]]
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
