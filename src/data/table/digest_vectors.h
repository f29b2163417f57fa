/* clang-format off */
/* Written by tests/data_vectors.py: tables of a pattern and their digests. */
static const struct {
    int type;
    uint64_t items;
    uint32_t features;
    int labelled;
    const char *digest;
} digest_vectors[] = {
    {1, 1, 1, 0,
     "c9d43ae5b2ec9ccc7dd77ad7ecd0ae81abc97808d1b75c1941a3d69001729a19"},
    {1, 3, 5, 1,
     "225aed2fcf93fddfab1ae4b00d8da296bcb79ceb808eb8567b434dc94d7c5669"},
    {1, 1024, 1024, 0,
     "49024df026fc624a65aee544a9cf9bcf695b41e903989042148817e46908de93"},
    {1, 2049, 1024, 1,
     "0850c94c2307dcabe935616b1c2c5f1bd8ffe1f81a0ccd58493263116273c573"},
    {1, 300000, 4, 1,
     "9bce70010f37c4829853e43863043f602833d1b34f67b85359940210143e15da"},
    {2, 3, 5, 1,
     "5e7ac5e58a5e240c2735c2dc5e57c9dee179bcc9ed1895e9c952805a68f0bf84"},
    {2, 1000, 300, 0,
     "50f8400e4ff570e2962fa3a6602c0dd7e11a4050996b25e45d6c6ec3d1ba632e"},
    {2, 7, 1, 1,
     "93a663f4fcdd9da4c5d0f980b69d5fb5bff2adf195d4869d2ece29d1708ee8c2"},
};
