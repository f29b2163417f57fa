"""AWS Signature version 4 from the server's side, written from its published description: is a
request signed by this key? It shares nothing with Quern's own code."""

import datetime
import hashlib
import hmac
import re
import urllib.parse

UNRESERVED = "-._~"


def encoded(text, keep=""):
    return urllib.parse.quote(text, safe=UNRESERVED + keep)


def canonical_query(target):
    """The pairs of the query, encoded and in order."""
    pairs = [part.partition("=") for part in target.partition("?")[2].split("&") if part]
    decoded = urllib.parse.unquote
    return "&".join(f"{name}={value}" for name, value in
                    sorted((encoded(decoded(n)), encoded(decoded(v))) for n, _, v in pairs))


def signature(method, target, headers, signed, secret, scope):
    """The signature in hexadecimal. `headers` has names in small letters, `signed` the names that
    count, in order; `scope` is DATE/REGION/SERVICE/aws4_request."""
    path = encoded(urllib.parse.unquote(target.partition("?")[0]), "/")
    lines = "".join(f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed)
    request = "\n".join([method, path, canonical_query(target), lines, ";".join(signed),
                         headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8}/[^/]+/[^/]+/aws4_request), ?"
                           r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})")


def fault_of(request, keys, service="s3"):
    """(code, message) of what S3 answers to a request with a wrong signature; None: it is right.
    `keys` maps a key's name to its secret and its session token ("": it has none)."""
    headers = request.headers
    found = AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if not found:
        return ("AuthorizationHeaderMalformed" if "authorization" in headers else "AccessDenied",
                "Access Denied")
    name, scope, signed, given = found[1], found[2], found[3].split(";"), found[4]
    if name not in keys:
        return "InvalidAccessKeyId", "The key does not exist"
    secret, token = keys[name]
    if headers.get("x-amz-security-token", "") != token:
        return "InvalidToken", "The session token is not that of the key"
    must = {"host", "x-amz-content-sha256"} | {n for n in headers if n.startswith("x-amz-")}
    if not must <= set(signed) or signed != sorted(signed):
        return "AccessDenied", f"Headers are not signed: {sorted(must - set(signed))}"
    when = headers.get("x-amz-date", "")
    if not re.fullmatch(r"\d{8}T\d{6}Z", when) or when[:8] != scope[:8]:
        return "AccessDenied", "x-amz-date is missing, or not of the day of the scope"
    sent = datetime.datetime.strptime(when, "%Y%m%dT%H%M%S%z")
    if abs(datetime.datetime.now(datetime.timezone.utc) - sent) > datetime.timedelta(minutes=15):
        return "RequestTimeTooSkewed", "The difference between the clocks is too large"
    if scope.split("/")[2] != service:
        return "AuthorizationHeaderMalformed", f"The service must be {service}"
    payload = headers["x-amz-content-sha256"]
    if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(request.body).hexdigest()):
        return "XAmzContentSHA256Mismatch", "The body has another SHA-256"
    if given != signature(request.method, request.target, headers, signed, secret, scope):
        return "SignatureDoesNotMatch", "The signature is not the one that the server computes"
    return None
