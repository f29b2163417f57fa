"""A second implementation of S3 and of AWS Security Token Service, `moto`; it is in .venv-peers
(`make peers`). It checks signatures where it is told to."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

PYTHON = Path(__file__).resolve().parent.parent / ".venv-peers" / "bin" / "python"

SERVER = """
import json, sys, urllib.request
import boto3
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
address = "http://%s:%d" % server.get_host_and_port()
of = lambda service: boto3.client(service, endpoint_url=address, region_name="us-east-1", aws_access_key_id="a",
                                  aws_secret_access_key="a")
s3, iam = of("s3"), of("iam")
s3.create_bucket(Bucket="box")
iam.create_user(UserName="ann")
iam.put_user_policy(UserName="ann", PolicyName="all", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": "*"}]}))
key = iam.create_access_key(UserName="ann")["AccessKey"]
role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps({
    "Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}))["Role"]["Arn"]
iam.put_role_policy(RoleName="reader", PolicyName="all", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
say = lambda what: print(json.dumps(what), flush=True)
say([address, key["AccessKeyId"], key["SecretAccessKey"], role])
for line in sys.stdin:
    what, *words = json.loads(line)
    if what == "put":
        for name in words[1:]:
            s3.put_object(Bucket="box", Key=name, Body=open(words[0], "rb").read())
        say("done")
    elif what == "copy":
        s3.copy({"Bucket": "box", "Key": words[0]}, "box", words[1])
        say("done")
    elif what == "get":
        import hashlib
        found = s3.get_object(Bucket="box", Key=words[0])
        say([hashlib.sha256(found["Body"].read()).hexdigest(), found["ETag"], len(s3.list_multipart_uploads(Bucket="box").get("Uploads", []))])
    elif what == "list":
        say([one["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket="box", Prefix=words[0])
             for one in page.get("Contents", [])])
    elif what == "strict":  # from now on each request needs a right signature
        urllib.request.urlopen(urllib.request.Request(address + "/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"})).read()
        say("done")
"""


class Moto:
    def __init__(self, process):
        self.process = process
        self.address, self.key, self.secret, self.role = json.loads(process.stdout.readline())

    def __call__(self, *words):
        print(json.dumps([str(word) for word in words]), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def moto():
    if not PYTHON.exists():
        pytest.skip("there is no .venv-peers: make peers")
    process = subprocess.Popen([PYTHON, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        yield Moto(process)
    finally:
        process.stdin.close()
        process.kill()
        process.wait()


def test_moto(moto, run_quern, tmp_path):
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    own |= {"HOME": str(tmp_path), "QUERN_CACHE": str(tmp_path / "cache"), "QUERN_STORE_PAUSE_MS": "0",
            "AWS_ACCESS_KEY_ID": moto.key, "AWS_SECRET_ACCESS_KEY": moto.secret, "AWS_ENDPOINT_URL": moto.address}

    def run(*words, env=(), **more):
        return run_quern(*words, env={**own, **dict(env)}, cwd=tmp_path, **more)

    def digest(*paths, **more):
        return json.loads(run("data", "info", "--json", "--no-cache", *paths, **more).stdout)["digest"]

    rows = np.random.default_rng(36).random((40_000, 3)).round(9)
    np.savetxt(tmp_path / "large.csv", rows, delimiter=",", header="a,b,y", comments="", fmt="%.9f")
    (tmp_path / "small.csv").write_text("a,b\n" + "1,2\n" * 3)
    moto("put", tmp_path / "large.csv", "large.csv", "with space+/ü%2F.csv")
    # Ranges, names of any bytes, a copy.
    moto("copy", "large.csv", "copy.csv")
    local = digest("large.csv")
    assert digest("s3://box/large.csv") == digest("s3://box/with space+/ü%2F.csv") == digest("s3://box/copy.csv") == local
    # More than a page of keys.
    names = [f"many/{i:04}.csv" for i in range(1_003)]
    moto("put", tmp_path / "small.csv", *names)
    assert json.loads(run("data", "info", "--json", "s3://box/many/").stdout)["items"] == 3 * len(names)
    # An upload of several parts, in place of an old object; a training whose checkpoints are removed.
    np.save(tmp_path / "a.npy", np.arange(2_100_000, dtype="<f8").reshape(-1, 4) % 977)
    moto("put", tmp_path / "small.csv", "a.npy")
    run("data", "convert", "a.npy", "--unlabelled", "-o", "b.npy")
    run("data", "convert", "a.npy", "--unlabelled", "-o", "s3://box/a.npy")
    sha, tag, open_uploads = moto("get", "a.npy")
    assert sha == hashlib.sha256((tmp_path / "b.npy").read_bytes()).hexdigest() and tag.endswith('-3"') and not open_uploads
    training = ["train", "--data", "large.csv", "--label", "y", "--model", "dense 1 none", "--epochs", "4", "--batch", "4000"]
    run(*training, "-o", "m")
    run(*training, "--checkpoint", "s3://box/ck", "--checkpoint-every", "5", "--run-dir", "s3://box/run", "-o", "s3://box/m")
    assert moto("get", "m")[0] == hashlib.sha256((tmp_path / "m").read_bytes()).hexdigest()
    assert len(moto("list", "ck/")) == 2 and moto("list", "run/") == ["run/metrics.csv", "run/run.json"]
    # Signatures are checked, also those of a role's keys.
    moto("strict")
    assert digest("s3://box/copy.csv", env={"QUERN_CACHE": str(tmp_path / "other")}) == local
    told = run("data", "info", "s3://box/large.csv", status=1, env={"AWS_SECRET_ACCESS_KEY": "wrong"}).stderr
    assert "SignatureDoesNotMatch" in told and "AWS_ACCESS_KEY_ID" in told
    told = run("data", "info", "s3://box/large.csv", status=1, env={"AWS_ACCESS_KEY_ID": "AKIANOBODY0000000000"}).stderr
    assert "InvalidAccessKeyId" in told
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(f"""
[profile reader]
role_arn = {moto.role}
source_profile = keys
[profile keys]
aws_access_key_id = {moto.key}
aws_secret_access_key = {moto.secret}
""")
    assert digest("s3://box/copy.csv", env={"AWS_PROFILE": "reader", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
                                            "QUERN_CACHE": str(tmp_path / "third")}) == local
