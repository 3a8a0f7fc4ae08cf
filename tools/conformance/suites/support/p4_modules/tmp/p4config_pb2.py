"""The message in which old controllers wrap the program of a switch, as its wire format is known to ours."""

from google.protobuf import descriptor_pb2, descriptor_pool

FIELD = descriptor_pb2.FieldDescriptorProto
FIELDS = (("reassign", 1, FIELD.TYPE_BOOL), ("device_data", 3, FIELD.TYPE_BYTES))


def _message_class() -> type:
    file = descriptor_pb2.FileDescriptorProto(name="gradbed/p4config.proto", package="p4.tmp", syntax="proto3")
    message = file.message_type.add(name="P4DeviceConfig")
    for name, number, kind in FIELDS:
        message.field.add(name=name, number=number, type=kind, label=FIELD.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
    try:
        from google.protobuf.message_factory import GetMessageClass
    except ImportError:  # protobuf 3
        from google.protobuf.message_factory import MessageFactory

        return MessageFactory(pool).GetPrototype(descriptor)
    return GetMessageClass(descriptor)


P4DeviceConfig = _message_class()
