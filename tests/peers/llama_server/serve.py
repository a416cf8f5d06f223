"""Starts llama.cpp's own HTTP server with the tiny model, and runs a command against it.

    python serve.py FOLDER REQUESTS COMMAND ARG…      {url} in an argument becomes the base URL

What is asked is kept in the folder REQUESTS. A word `+` ends a command, and the next one begins.
"""

import pathlib
import subprocess
import sys

import record
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
    url = record.start(server.listening_address.rstrip("/") + "/v1", sys.argv[2])
    commands = [[]]
    for argument in sys.argv[3:]:
        if argument == "+":
            commands.append([])
        else:
            commands[-1].append(argument.replace("{url}", url))
    for command in commands:
        code = subprocess.run(command, check=False).returncode
        if code:
            sys.exit(code)


if __name__ == "__main__":
    main()
