"""The servers of the tests themselves: what a client of Quern is later measured against."""

import datetime
import hashlib
import http.client
import re
import urllib.parse
import xml.etree.ElementTree as ET

import store_server
import store_signing
import webhdfs_server

EMPTY = hashlib.sha256(b"").hexdigest()


def test_signatures_are_those_that_amazon_published():
    """Three of the examples of "Authenticating Requests (AWS Signature Version 4)" of S3."""
    secret, scope = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524/us-east-1/s3/aws4_request"
    headers = {"host": "examplebucket.s3.amazonaws.com", "x-amz-date": "20130524T000000Z",
               "x-amz-content-sha256": EMPTY}
    signed = ["host", "x-amz-content-sha256", "x-amz-date"]

    def sign(target, more=(), **others):
        all_headers = {**headers, **{name.replace("_", "-"): value for name, value in others.items()}}
        return store_signing.signature("GET", target, all_headers, sorted([*signed, *more]), secret, scope)

    assert sign("/test.txt", ["range"], range="bytes=0-9") == \
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    assert sign("/?lifecycle") == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    assert sign("/?max-keys=2&prefix=J") == \
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"


class Client:
    """Signs its requests as the server checks them, and knows nothing else about S3."""

    def __init__(self, server):
        self.server, self.connection = server, http.client.HTTPConnection("127.0.0.1", server.port)

    def __call__(self, method, target, body=b"", **more):
        server = self.server
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": f"127.0.0.1:{server.port}", "x-amz-date": now,
                   "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
                   **{name.replace("_", "-"): value for name, value in more.items()}}
        scope, signed = f"{now[:8]}/{server.REGION}/s3/aws4_request", sorted(headers)
        signature = store_signing.signature(method, target, headers, signed, server.SECRET, scope)
        headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={server.KEY}/{scope}, "
                                    f"SignedHeaders={';'.join(signed)}, Signature={signature}")
        headers["Content-Length"] = str(len(body))
        self.connection.request(method, target, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read(), answer


def test_s3_reads_writes_lists_and_refuses():
    with store_server.S3(page=2, smallest_part=3, regions={"far": "eu-north-1"},
                         buckets=["b", "far"]) as s3:
        client = Client(s3)
        assert client("PUT", "/b/a%20b/%C3%A9", b"0123456789")[0] == 200
        assert s3.get("b/a b/é") == b"0123456789"
        assert client("GET", "/b/a%20b/%C3%A9", range="bytes=-3")[:2] == (206, b"789")
        assert client("GET", "/b/a%20b/%C3%A9", range="bytes=10-")[0] == 416
        assert client("PUT", "/b/a%20b/%C3%A9", b"new", if_none_match="*")[0] == 412
        status, body, _ = client("GET", "/b/none")
        assert status == 404 and ET.fromstring(body).findtext("Code") == "NoSuchKey"
        status, _, answer = client("GET", "/far/none")
        assert status == 301 and answer.headers["x-amz-bucket-region"] == "eu-north-1"
        # A changed request: the signature is wrong.
        client.connection.request("GET", "/b/none", headers={"Authorization": "x"})
        answer = client.connection.getresponse()
        assert answer.status == 400 and b"AuthorizationHeaderMalformed" in answer.read()

        for key in ("x/1", "x/2", "x/3/4", "y"):
            s3.put(f"b/{key}", b"1")
        _, body, _ = client("GET", "/b?list-type=2&prefix=x%2F&delimiter=%2F")
        more = ET.fromstring(body).findtext("{*}NextContinuationToken")
        _, rest, _ = client("GET", "/b?continuation-token=" + urllib.parse.quote(more, safe="") +
                            "&delimiter=%2F&list-type=2&prefix=x%2F")
        assert [e.text for e in ET.fromstring(body).iterfind(".//{*}Contents/{*}Key")] == ["x/1", "x/2"]
        assert ET.fromstring(rest).findtext("{*}CommonPrefixes/{*}Prefix") == "x/3/"

        number = ET.fromstring(client("POST", "/b/big?uploads")[1]).findtext("{*}UploadId")
        number = urllib.parse.quote(number, safe="")
        tags = [client("PUT", f"/b/big?partNumber={part}&uploadId={number}", data)[2].headers["ETag"]
                for part, data in ((1, b"abcd"), (2, b"e"))]
        wanted = "".join(f"<Part><PartNumber>{i + 1}</PartNumber><ETag>{tag}</ETag></Part>"
                         for i, tag in enumerate(tags))
        swapped = re.sub("(.*)(<Part><PartNumber>2.*)", r"\2\1", wanted)
        for parts, status, code in ((swapped, 400, b"InvalidPartOrder"), (wanted, 200, b"ETag"),
                                    (wanted, 404, b"NoSuchUpload")):
            got, body, _ = client("POST", f"/b/big?uploadId={number}",
                                  f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode())
            assert got == status and code in body
        assert s3.get("b/big") == b"abcde" and not s3.uploads


def test_webhdfs_redirects_and_renames():
    with webhdfs_server.WebHDFS(users=["ann"]) as hdfs:
        def ask(method, path, op, body=b"", port=hdfs.port, **query):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            query = urllib.parse.urlencode({"op": op, "user.name": "ann", **query})
            connection.request(method, f"/webhdfs/v1{path}?{query}", body)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers["Location"]

        assert ask("PUT", "/a/t", "CREATE", b"data")[0] == 400  # data for the name node
        status, _, place = ask("PUT", "/a/t", "CREATE")
        node = urllib.parse.urlsplit(place)
        connection = http.client.HTTPConnection(node.hostname, node.port)
        connection.request("PUT", f"{node.path}?{node.query}", b"0123456789")
        assert status == 307 and connection.getresponse().status == 201
        place = urllib.parse.urlsplit(ask("GET", "/a/t", "OPEN", offset=2, length=3)[2])
        connection = http.client.HTTPConnection(place.hostname, place.port)
        connection.request("GET", f"{place.path}?{place.query}")
        assert connection.getresponse().read() == b"234"
        hdfs.put("/a/u", b"old")
        assert ask("PUT", "/a/t", "RENAME", destination="/a/u")[1] == b'{"boolean": false}'
        assert ask("PUT", "/a/t", "RENAME", destination="/a/u", renameoptions="OVERWRITE")[0] == 200
        assert hdfs.names() == ["/a/u"] and hdfs.get("/a/u") == b"0123456789"
        assert b'"length": 10' in ask("GET", "/a", "LISTSTATUS")[1]
        assert b"FileNotFoundException" in ask("GET", "/a/t", "GETFILESTATUS")[1]
