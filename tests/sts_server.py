"""AWS Security Token Service for tests: AssumeRole and AssumeRoleWithWebIdentity by the query protocol.
It gives keys that a store_server.S3 then knows.

    with sts_server.STS(s3, {"KEY": ("secret", "")}) as sts:
        sts.roles["arn:aws:iam::1:role/r"] = {"KEY", "the token of a pod"}     # who may assume it
        sts.asked                                   # [(action, role, {other parameters})]
"""

import datetime
import itertools
import urllib.parse

import http_server
import store_signing
from store_server import elements, xml

Answer = http_server.Answer


class STS(http_server.Server):
    def __init__(self, s3, keys):
        super().__init__()
        self.s3, self.keys = s3, dict(keys)
        self.roles, self.asked, self.seconds = {}, [], 3600
        self._numbers = itertools.count(1)

    def _caller(self, request, form):
        """Who asks, or an answer that refuses."""
        if form["Action"] == "AssumeRoleWithWebIdentity":
            return form["WebIdentityToken"], None
        wrong = store_signing.fault_of(request, self.keys, "sts")
        if wrong:
            return None, self.refuse(403, *wrong)
        return store_signing.AUTHORIZATION.fullmatch(request.headers["authorization"])[1], None

    @staticmethod
    def refuse(status, code, why):
        return Answer(status, xml("ErrorResponse", f"<Error>{elements(Type='Sender', Code=code, Message=why)}</Error>"))

    def answer(self, request):
        form = dict(urllib.parse.parse_qsl(request.body.decode(), strict_parsing=True))
        assert request.method == "POST" and form["Version"] == "2011-06-15" and form["RoleSessionName"]
        who, refusal = self._caller(request, form)
        if refusal:
            return refusal
        action, role = form["Action"], form["RoleArn"]
        self.asked.append((action, role, {name: value for name, value in form.items()
                                          if name not in ("Action", "Version", "RoleArn", "WebIdentityToken")}))
        if who not in self.roles.get(role, ()):
            return self.refuse(403, "AccessDenied", f"{action} is not allowed on {role}")
        key = f"ASIA{next(self._numbers):012}"
        self.keys[key] = secret, token = f"secret/of+{key}", f"session+of/{key}=="
        with self.s3.lock:
            self.s3.keys[key] = secret, token
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.seconds)
        inside = elements(AccessKeyId=key, SecretAccessKey=secret, SessionToken=token,
                          Expiration=end.strftime("%Y-%m-%dT%H:%M:%SZ"))
        return Answer(200, xml(f"{action}Response", f"<{action}Result><Credentials>{inside}</Credentials></{action}Result>"))
