"""A small and strict S3 server for tests: signatures are checked, as are ranges, conditions, parts
and their order. Faults and the log are those of http_server.py.

    with store_server.S3(buckets=["b"]) as s3:
        s3.put("b/t.csv", b"...")
        run([quern, "data", "info", "s3://b/t.csv"], env=s3.environment)
        assert s3.get("b/out.csv") == b"..."       # None: it is not there
        assert len(s3.requests("GET", "t.csv")) == 1

`public` names buckets that anybody may read, also by plain http://. A bucket of another region
answers 301 to a signature for the wrong one (`regions={"b": "eu-north-1"}`).
"""

import base64
import dataclasses
import email.utils
import hashlib
import itertools
import time
import urllib.parse
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

import http_server
import store_signing

Answer = http_server.Answer
SMALLEST_PART = 5 << 20
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"

STATUS = {
    "AccessDenied": 403, "AuthorizationHeaderMalformed": 400, "BadDigest": 400, "BucketNotEmpty": 409,
    "EntityTooSmall": 400, "InvalidAccessKeyId": 403, "InvalidArgument": 400, "InvalidPart": 400,
    "InvalidPartOrder": 400, "InvalidRange": 416, "InvalidToken": 400, "MalformedXML": 400,
    "MissingContentLength": 411, "NoSuchBucket": 404, "NoSuchKey": 404, "NoSuchUpload": 404,
    "NotImplemented": 501, "PermanentRedirect": 301, "PreconditionFailed": 412,
    "RequestTimeTooSkewed": 403, "SignatureDoesNotMatch": 403, "XAmzContentSHA256Mismatch": 400,
}


class Refused(Exception):
    def __init__(self, code, message="", **headers):
        super().__init__(code)
        self.code, self.message, self.headers = code, message, headers


@dataclasses.dataclass
class Object:
    data: bytes
    etag: str
    about: dict  # headers that come back with the object: its type and x-amz-meta-*
    time: float


@dataclasses.dataclass
class Upload:
    bucket: str
    key: str
    about: dict
    parts: dict = dataclasses.field(default_factory=dict)  # number: (ETag, bytes)


def quoted_md5(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def xml(name, inside, attributes=f' xmlns="{NAMESPACE}"'):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}{attributes}>{inside}</{name}>'.encode()


def elements(**texts):
    return "".join(f"<{name}>{escape(str(text))}</{name}>" for name, text in texts.items())


def kept_headers(headers):
    return {name: value for name, value in headers.items()
            if name.startswith("x-amz-meta-") or name == "content-type"}


def check_condition(headers, old):
    """If-Match and If-None-Match of a request that writes."""
    if headers.get("if-none-match") == "*" and old:
        raise Refused("PreconditionFailed", "At least one of the preconditions did not hold")
    if "if-match" in headers:
        if not old:
            raise Refused("NoSuchKey", "The key does not exist")
        if headers["if-match"] != old.etag:
            raise Refused("PreconditionFailed", "At least one of the preconditions did not hold")


class S3(http_server.Server):
    KEY, SECRET, REGION = "AKIAQUERNTESTS", "a/secret+of the=tests", "us-east-1"

    def __init__(self, buckets=("b",), public=(), regions=None, token="", page=1000,
                 smallest_part=SMALLEST_PART):
        super().__init__()
        self.buckets = {name: {} for name in (*buckets, *public)}
        self.public, self.regions = set(public), regions or {}
        self.keys = {self.KEY: (self.SECRET, token)}
        self.page, self.smallest_part = page, smallest_part
        self.uploads = {}
        self._numbers = itertools.count(1)

    @property
    def environment(self):
        """What a client needs; it replaces what the user has set."""
        token = self.keys[self.KEY][1]
        return {"AWS_ACCESS_KEY_ID": self.KEY, "AWS_SECRET_ACCESS_KEY": self.SECRET,
                "AWS_REGION": self.REGION, "AWS_ENDPOINT_URL_S3": self.address,
                **({"AWS_SESSION_TOKEN": token} if token else {})}

    # What a test puts and looks at; `name` is bucket/key.

    def put(self, name, data, about=None, age=0):
        """`age`: seconds since it was written; below 0: in the future."""
        bucket, _, key = name.partition("/")
        with self.lock:
            self.buckets[bucket][key] = Object(data, quoted_md5(data), about or {}, time.time() - age)

    def get(self, name):
        bucket, _, key = name.partition("/")
        with self.lock:
            found = self.buckets[bucket].get(key)
        return found.data if found else None

    def names(self):
        with self.lock:
            return sorted(f"{bucket}/{key}" for bucket in self.buckets for key in self.buckets[bucket])

    # What a client gets.

    def answer(self, request):
        try:
            return self._do(request)
        except Refused as why:
            headers = {name.replace("_", "-"): value for name, value in why.headers.items()}
            inside = elements(Code=why.code, Message=why.message, Resource=request.path,
                              RequestId="1", **({"Region": headers["x-amz-bucket-region"]}
                                                if "x-amz-bucket-region" in headers else {}))
            return Answer(STATUS[why.code], xml("Error", inside, ""),
                          {"Content-Type": "application/xml", **headers})

    def _place(self, request):
        """Bucket and key, by the path or by the host's name."""
        host = request.headers.get("host", "").partition(":")[0]
        name = host.removesuffix(".localhost")
        if name != host:
            return name, request.path.removeprefix("/")
        bucket, _, key = request.path.removeprefix("/").partition("/")
        return bucket, key

    def _check(self, request, bucket):
        reads = request.method in ("GET", "HEAD")
        if bucket in self.public and reads and "authorization" not in request.headers:
            return
        wrong = store_signing.fault_of(request, self.keys)
        if wrong:
            raise Refused(*wrong)
        region = self.regions.get(bucket, self.REGION)
        if request.headers["authorization"].split("/")[2] != region:
            raise Refused("PermanentRedirect", "The bucket is in another region",
                          x_amz_bucket_region=region)

    def _do(self, request):
        bucket, key = self._place(request)
        self._check(request, bucket)
        if bucket not in self.buckets:
            raise Refused("NoSuchBucket", "The bucket does not exist")
        row = self.ROUTES.get((request.method, bool(key), self._action(request.query)))
        if not row:
            raise Refused("NotImplemented", f"{request.method} {request.target}")
        if request.method in ("PUT", "POST") and "content-length" not in request.headers:
            raise Refused("MissingContentLength", "Content-Length is missing")
        return row(self, request, bucket, key)

    @staticmethod
    def _action(query):
        return next((name for name in ("uploads", "uploadId", "list-type", "location", "delete")
                     if name in query), "")

    def _object(self, bucket, key):
        found = self.buckets[bucket].get(key)
        if not found:
            raise Refused("NoSuchKey", "The key does not exist")
        return found

    def _get(self, request, bucket, key):
        found, headers = self._object(bucket, key), request.headers
        about = {"ETag": found.etag, "Accept-Ranges": "bytes",
                 "Last-Modified": email.utils.formatdate(found.time, usegmt=True), **found.about}
        if headers.get("if-match", found.etag) not in (found.etag, "*"):
            raise Refused("PreconditionFailed", "At least one of the preconditions did not hold")
        if headers.get("if-none-match") in (found.etag, "*"):
            return Answer(304, b"", about)
        wanted = http_server.span(headers.get("range", ""), len(found.data))
        if wanted == (0, 0):
            raise Refused("InvalidRange", "The range cannot be satisfied")
        if not wanted:
            return Answer(200, found.data, about)
        about["Content-Range"] = f"bytes {wanted[0]}-{wanted[1] - 1}/{len(found.data)}"
        return Answer(206, found.data[wanted[0]:wanted[1]], about)

    def _check_body(self, request):
        md5 = request.headers.get("content-md5")
        if md5 and base64.b64decode(md5) != hashlib.md5(request.body).digest():
            raise Refused("BadDigest", "The Content-MD5 is not that of the body")

    def _put(self, request, bucket, key):
        self._check_body(request)
        check_condition(request.headers, self.buckets[bucket].get(key))
        self.put(f"{bucket}/{key}", request.body, kept_headers(request.headers))
        return Answer(200, b"", {"ETag": self.buckets[bucket][key].etag})

    def _delete(self, request, bucket, key):
        old = self.buckets[bucket].get(key)
        if old and "if-match" in request.headers:
            check_condition(request.headers, old)
        self.buckets[bucket].pop(key, None)
        return Answer(204)

    def _list(self, request, bucket, _key):
        query = request.query
        if query.get("list-type") != "2":
            raise Refused("NotImplemented", "Only version 2 of the listing")
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token", query.get("start-after", ""))
        most = min(int(query.get("max-keys", "1000")), self.page)
        name = urllib.parse.quote if query.get("encoding-type") == "url" else str
        rows, last, more = [], "", False
        for key in sorted(self.buckets[bucket], key=str.encode):
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            shown = key[:end + len(delimiter)] if end >= 0 else key
            if not key.startswith(prefix) or shown.encode() <= after.encode() or shown == last:
                continue
            if len(rows) == most:
                more = True
                break
            last = shown
            one = self.buckets[bucket][key]
            rows.append(f"<CommonPrefixes>{elements(Prefix=name(shown))}</CommonPrefixes>" if end >= 0
                        else "<Contents>" + elements(
                            Key=name(key), LastModified="2026-01-02T03:04:05.000Z", ETag=one.etag,
                            Size=len(one.data), StorageClass="STANDARD") + "</Contents>")
        head = elements(Name=bucket, Prefix=name(prefix), KeyCount=len(rows), MaxKeys=most,
                        IsTruncated="true" if more else "false",
                        **({"NextContinuationToken": last} if more else {}),
                        **({"EncodingType": "url"} if name is not str else {}))
        return Answer(200, xml("ListBucketResult", head + "".join(rows)),
                      {"Content-Type": "application/xml"})

    # Uploads of several parts.

    def _upload(self, request, bucket, key):
        found = self.uploads.get(request.query["uploadId"])
        if not found or (found.bucket, found.key) != (bucket, key):
            raise Refused("NoSuchUpload", "The upload does not exist")
        return found

    def _begin(self, request, bucket, key):
        number = f"upload+{next(self._numbers)}/="
        self.uploads[number] = Upload(bucket, key, kept_headers(request.headers))
        return Answer(200, xml("InitiateMultipartUploadResult",
                               elements(Bucket=bucket, Key=key, UploadId=number)))

    def _part(self, request, bucket, key):
        upload, number = self._upload(request, bucket, key), int(request.query["partNumber"])
        self._check_body(request)
        if not 1 <= number <= 10000:
            raise Refused("InvalidArgument", "Part numbers are 1 to 10000")
        upload.parts[number] = (quoted_md5(request.body), request.body)
        return Answer(200, b"", {"ETag": upload.parts[number][0]})

    def _parts(self, request, bucket, key):
        upload = self._upload(request, bucket, key)
        return Answer(200, xml("ListPartsResult", "".join(
            f"<Part>{elements(PartNumber=number, ETag=etag, Size=len(data))}</Part>"
            for number, (etag, data) in sorted(upload.parts.items()))))

    def _complete(self, request, bucket, key):
        upload = self._upload(request, bucket, key)
        try:
            listed = [(int(part.findtext("{*}PartNumber")), part.findtext("{*}ETag"))
                      for part in ET.fromstring(request.body).findall("{*}Part")]
        except (ET.ParseError, TypeError, ValueError):
            raise Refused("MalformedXML", "The list of parts is not right") from None
        if not listed:
            raise Refused("MalformedXML", "The list of parts is empty")
        if [number for number, _ in listed] != sorted({number for number, _ in listed}):
            raise Refused("InvalidPartOrder", "The parts are not in order")
        for number, etag in listed:
            if upload.parts.get(number, ("",))[0].strip('"') != etag.strip('"'):
                raise Refused("InvalidPart", f"Part {number} was not found, or has another ETag")
        parts = [upload.parts[number][1] for number, _ in listed]
        if any(len(part) < self.smallest_part for part in parts[:-1]):
            raise Refused("EntityTooSmall", "A part before the last is too small")
        check_condition(request.headers, self.buckets[bucket].get(key))
        etag = hashlib.md5(b"".join(hashlib.md5(part).digest() for part in parts)).hexdigest()
        self.buckets[bucket][key] = Object(b"".join(parts), f'"{etag}-{len(parts)}"', upload.about,
                                           time.time())
        del self.uploads[request.query["uploadId"]]
        return Answer(200, xml("CompleteMultipartUploadResult", elements(
            Location=f"{self.address}/{bucket}/{key}", Bucket=bucket, Key=key,
            ETag=f'"{etag}-{len(parts)}"')), {"Content-Type": "application/xml"})

    def _abort(self, request, bucket, key):
        self._upload(request, bucket, key)
        del self.uploads[request.query["uploadId"]]
        return Answer(204)

    def _uploads(self, _request, bucket, _key):
        return Answer(200, xml("ListMultipartUploadsResult", elements(Bucket=bucket) + "".join(
            f"<Upload>{elements(Key=upload.key, UploadId=number)}</Upload>"
            for number, upload in self.uploads.items() if upload.bucket == bucket)))

    def _look_at_bucket(self, _request, bucket, _key):
        return Answer(200, b"", {"x-amz-bucket-region": self.regions.get(bucket, self.REGION)})

    ROUTES = {  # method, with a key, what the query asks for
        ("GET", True, ""): _get, ("HEAD", True, ""): _get,
        ("PUT", True, ""): _put, ("DELETE", True, ""): _delete,
        ("GET", False, "list-type"): _list, ("HEAD", False, ""): _look_at_bucket,
        ("POST", True, "uploads"): _begin, ("PUT", True, "uploadId"): _part,
        ("GET", True, "uploadId"): _parts, ("POST", True, "uploadId"): _complete,
        ("DELETE", True, "uploadId"): _abort, ("GET", False, "uploads"): _uploads,
    }
