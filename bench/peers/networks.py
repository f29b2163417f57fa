"""The convolutional networks of train_cnn.py and of scripts/gpu_check.py."""

VGG8 = ("conv 64 3x3 relu; conv 64 3x3 relu; maxpool 2; conv 128 3x3 relu; conv 128 3x3 relu; maxpool 2; "
        "conv 256 3x3 relu; conv 256 3x3 relu; maxpool 2; dense 256 relu; dense 10 softmax")
LENET = "conv 32 5x5 relu; maxpool 2; conv 64 5x5 relu; maxpool 2; dense 512 relu; dense 10 softmax"


def resnet(blocks):
    """The network of 6 * blocks + 2 layers for 32x32 (He and others, 2016), with projections."""
    layers = ["conv 16 3x3", "batchnorm relu"]
    for stage, width in enumerate((16, 32, 64)):
        for block in range(blocks):
            wider = stage > 0 and block == 0
            step = " stride 2" if wider else ""
            shortcut = f" | conv {width} 1x1 stride 2; batchnorm" if wider else ""
            layers.append(f"residual {{ conv {width} 3x3{step}; batchnorm relu; conv {width} 3x3; "
                          f"batchnorm{shortcut} }} relu")
    return "; ".join([*layers, "globalpool", "dense 10 softmax"])


# The text, the data, the rate at batch 128.
NETWORKS = {"lenet": (LENET, "mnist", 0.01), "vgg8": (VGG8, "cifar10", 0.01),
            "resnet20": (resnet(3), "cifar10", 0.1)}
SHAPES = {"mnist": (1, 28, 28), "cifar10": (3, 32, 32)}
