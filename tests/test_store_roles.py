"""Credentials that a role, a pod's token or a program gives, as the AWS command finds them."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

import store_server
import sts_server

ROLE, OTHER = "arn:aws:iam::1:role/reader", "arn:aws:iam::1:role/other"
POD = "token.of-a_pod"


@pytest.fixture
def s3():
    with store_server.S3() as server:
        server.put("b/t.csv", b"a,b\n" + b"1,2\n" * 9)
        yield server


@pytest.fixture
def sts(s3):
    with sts_server.STS(s3, {s3.KEY: (s3.SECRET, "")}) as server:
        server.roles = {ROLE: {s3.KEY, POD}}
        yield server


@pytest.fixture
def own(s3, sts, tmp_path):
    """The environment of a user without credentials."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, "HOME": str(tmp_path), "QUERN_CACHE": str(tmp_path / "cache"), "QUERN_STORE_PAUSE_MS": "0",
            "AWS_ENDPOINT_URL_S3": s3.address, "AWS_ENDPOINT_URL_STS": sts.address}


@pytest.fixture
def read(run_quern, own, s3, sts):
    """The items of the table, or the message; neither has a secret."""
    def run(status=0, **env):
        done = run_quern("data", "info", "--json", "s3://b/t.csv", status=status, env={**own, **env})
        secrets = [text for pair in [*s3.keys.values(), *sts.keys.values()] for text in pair if text]
        assert not [text for text in [POD, *secrets] if text in done.stdout + done.stderr]
        return json.loads(done.stdout)["items"] if status == 0 else done.stderr
    return run


def in_core(process, secret):
    """Where a core file of the process would have the secret: its areas that are written to, but not
    those that are left out (VmFlags dd)."""
    found, area = [], ""
    with open(f"/proc/{process}/smaps") as areas, open(f"/proc/{process}/mem", "rb") as memory:
        for line in areas:
            words = line.split()
            if not words[0].endswith(":"):
                area = words
            elif words[0] == "VmFlags:" and "wr" in words and "dd" not in words:
                begin, end = (int(word, 16) for word in area[0].split("-"))
                memory.seek(begin)
                at = memory.read(end - begin).find(secret)
                found += [f"{' '.join(area)} at {at}"] if at >= 0 else []
    return found


def config(tmp_path, text, credentials=""):
    (tmp_path / ".aws").mkdir(exist_ok=True)
    (tmp_path / ".aws" / "config").write_text(text)
    (tmp_path / ".aws" / "credentials").write_text(credentials)


def test_a_role_is_assumed(s3, sts, read, tmp_path):
    keys = f"aws_access_key_id = {s3.KEY}\naws_secret_access_key = {s3.SECRET}\n"
    config(tmp_path, f"""
[profile work]
role_arn = {ROLE}
source_profile = base
external_id = a b+c
duration_seconds = 900
role_session_name = me
region = eu-west-1
[profile chain]
role_arn = {OTHER}
source_profile = work
[profile both]
role_arn = {ROLE}
source_profile = both
[profile here]
role_arn = {ROLE}
credential_source = Environment
[profile code]
role_arn = {ROLE}
source_profile = base
mfa_serial = arn:aws:iam::1:mfa/me
[profile lost]
role_arn = {ROLE}
source_profile = nobody
[profile alone]
role_arn = {ROLE}
[profile one]
role_arn = {ROLE}
source_profile = two
[profile two]
role_arn = {ROLE}
source_profile = one
[profile denied]
role_arn = {OTHER}
source_profile = base
""", f"[base]\n{keys}[both]\n{keys}")
    assert read(AWS_PROFILE="work") == 9
    assert sts.asked == [("AssumeRole", ROLE, {"RoleSessionName": "me", "ExternalId": "a b+c", "DurationSeconds": "900"})]
    assert "/eu-west-1/sts/" in sts.log[0].headers["authorization"]
    sts.roles[OTHER] = {"ASIA000000000002"}  # the next key
    assert read(AWS_PROFILE="chain") == read(AWS_PROFILE="both") == 9
    assert [role for _, role, _ in sts.asked] == [ROLE, ROLE, OTHER, ROLE]
    # Keys of the environment come before a profile; a role may ask for them.
    assert read(AWS_PROFILE="denied", AWS_ACCESS_KEY_ID=s3.KEY, AWS_SECRET_ACCESS_KEY=s3.SECRET) == 9
    for profile, said in (("code", "mfa_serial"), ("lost", "its source_profile is not there"),
                          ("alone", "add source_profile or credential_source"), ("one", "lead in a circle"),
                          ("here", "no credentials to assume its role with"),
                          ("denied", f"AccessDenied: AssumeRole is not allowed on {OTHER}")):
        before = len(sts.asked)
        assert said in read(status=1, AWS_PROFILE=profile)
        assert len(sts.asked) == before + (profile == "denied")  # a command is refused once


def test_a_pod_has_a_token(s3, sts, read, own, quern, tmp_path):
    """The file is read again when the credentials end; the store ends them early here."""
    (tmp_path / "token").write_text(POD + "\n")
    pod = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": ROLE, "AWS_ROLE_SESSION_NAME": "pod-7"}
    assert read(**pod) == 9
    assert sts.asked == [("AssumeRoleWithWebIdentity", ROLE, {"RoleSessionName": "pod-7"})]
    assert "authorization" not in sts.log[0].headers and sts.log[0].target == "/"
    assert "AccessDenied" in read(status=1, **{**pod, "AWS_ROLE_ARN": OTHER})
    assert "its role is not named" in read(status=1, **{**pod, "AWS_ROLE_ARN": ""})
    assert "cannot be read" in read(status=1, **{**pod, "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "none")})
    config(tmp_path, f"[default]\nrole_arn = {ROLE}\nweb_identity_token_file = {tmp_path / 'token'}\n")
    sts.fault("status", status=503, times=2)
    assert read() == 9
    # In the middle of a long read the store says that the token has ended.
    s3.put("b/t.csv", b"a,b\n" + b"1,2\n" * 400_000)
    s3.fault("status", method="GET", key="t.csv", skip=1, status=400, body=b"<Error><Code>ExpiredToken</Code></Error>")
    before = len(sts.asked)
    assert read(**pod) == 400_000
    assert len(sts.asked) == before + 2
    # Credentials that end soon are not asked for by each request.
    s3.put("b/t.csv", b"a,b\n" + b"1,2\n" * 9)
    sts.seconds = 200
    before = len(sts.log)
    assert read(**pod) == 9
    assert len(sts.log) == before + 1
    sts.forget()
    # While the token is on its way: what lists the processes shows nothing.
    sts.fault("hold", method="POST")
    process = subprocess.Popen([quern, "data", "info", "s3://b/t.csv"], env={**own, **pod})
    assert sts.held.wait(20)
    shown = Path(f"/proc/{process.pid}/cmdline").read_bytes() + Path(f"/proc/{process.pid}/environ").read_bytes()
    areas = in_core(process.pid, POD.encode())
    process.kill()
    process.wait()
    assert POD.encode() not in shown and not areas


def test_files_as_people_write_them(s3, read, tmp_path):
    """A mark of byte order, line ends of Windows, indents, comments after values; and endpoints of a
    section of services, which the variables replace."""
    config(tmp_path, f"""
  [default]   # the first one
    region = us-east-1   ; near
    services = mine
    endpoint_url = http://127.0.0.1:9/profile
[profile off]
services = mine
ignore_configured_endpoint_urls = true
[services mine]
sts =
  endpoint_url = http://127.0.0.1:9/sts
s3 =
  addressing_style = path
  endpoint_url = {s3.address}
dynamodb =
  endpoint_url = http://127.0.0.1:9/other
""".replace("\n", "\r\n"), f"""\ufeff[default]
    ; a comment
    AWS_ACCESS_KEY_ID = {s3.KEY}  # mine
    aws_secret_access_key\t=\t{s3.SECRET}\t# of January
[off]
aws_access_key_id = {s3.KEY}
aws_secret_access_key = {s3.SECRET}
""".replace("\n", "\r\n"))
    assert read(AWS_ENDPOINT_URL_S3="") == 9
    assert "127.0.0.1:9/b/" in read(status=1, AWS_ENDPOINT_URL_S3="", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert "at https://b.s3.us-east-1.amazonaws.com/t.csv" in read(status=1, AWS_PROFILE="off", https_proxy="http://127.0.0.1:9")


def test_profiles_as_people_name_them(s3, read, tmp_path):
    """In quotes, as the AWS command writes a name with blanks; "profile default"; a key without its
    secret."""
    config(tmp_path, f"""[profile default]
endpoint_url = {s3.address}
[profile 'my own']
endpoint_url = {s3.address}
[profile "my half"]
endpoint_url = {s3.address}
""", f"""[default]
aws_access_key_id = {s3.KEY}
aws_secret_access_key = {s3.SECRET}
[my own]
aws_access_key_id = {s3.KEY}
aws_secret_access_key = {s3.SECRET}
[my half]
aws_access_key_id = {s3.KEY}
""")
    none = {"AWS_ENDPOINT_URL_S3": ""}
    assert read(**none) == read(**none, AWS_PROFILE="my own") == 9
    assert read(**none, AWS_DEFAULT_PROFILE="my own", AWS_PROFILE="absent") == 9
    told = read(status=1, **none, AWS_PROFILE="my half")
    assert "aws_secret_access_key is missing" in told and "the profile my half" in told
    assert "AWS_SECRET_ACCESS_KEY is missing" in read(status=1, AWS_ACCESS_KEY_ID=s3.KEY)


def test_a_program_gives_them(s3, read, tmp_path):
    told = {"Version": 1, "AccessKeyId": s3.KEY, "SecretAccessKey": s3.SECRET, "Expiration": "2999-01-01T00:00:00Z"}
    (tmp_path / "told.json").write_text(json.dumps(told))
    (tmp_path / "wrong.json").write_text(json.dumps({**told, "Version": 2}))
    config(tmp_path, f"""
[default]
credential_process = echo "a warning" >&2; cat '{tmp_path}/told.json'
[profile role]
role_arn = {ROLE}
source_profile = default
[profile wrong]
credential_process = cat {tmp_path}/wrong.json
[profile fails]
credential_process = cat {tmp_path}/told.json; exit 3
[profile ended]
credential_process = echo >> {tmp_path}/runs; cat {tmp_path}/ended.json  # a comment of the shell
[profile short]
credential_process = echo >> {tmp_path}/runs; cat {tmp_path}/short.json
""")
    for name, seconds in ("ended", -600), ("short", 200):
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        (tmp_path / f"{name}.json").write_text(json.dumps({**told, "Expiration": end}))
    assert read(AWS_PROFILE="short") == 9  # several requests
    assert "the credentials ended 10 minutes ago" in read(status=1, AWS_PROFILE="ended")
    assert (tmp_path / "runs").read_text() == "\n\n"  # each was asked for once
    assert read() == read(AWS_PROFILE="role") == 9
    assert "printed no credentials" in read(status=1, AWS_PROFILE="wrong")
    assert "exit code 3" in read(status=1, AWS_PROFILE="fails")
