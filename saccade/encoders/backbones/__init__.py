"""Backbones: pretrained networks that describe pictures and are not trained further."""

from saccade.encoders.backbones.base import Backbone, backbones
from saccade.encoders.backbones.efficientnet import EfficientNetLite0
from saccade.encoders.backbones.hugging_face import TransformersBackbone
from saccade.encoders.backbones.vgg import VGG19

__all__ = ["VGG19", "Backbone", "EfficientNetLite0", "TransformersBackbone", "backbones"]
