"""Failures: calls that failed, as the conversation carries them."""

import errno


class Failure(Exception):
    """A call that failed, as the protocol carries it."""

    def __init__(self, call, path, detail, error_number=0, offset=0, unavailable=0):
        super().__init__(detail)
        self.fields = {
            "call": call,
            "errno": error_number,
            "path": path,
            "offset": offset,
            "detail": detail,
            "unavailable": unavailable,
        }


NOT_OFFERED = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES, errno.ENODEV)


def failed_call(call, path, error, offset=0):
    """A call that failed although it should work everywhere."""
    detail = "%s at offset %d of %s: %s" % (call, offset, path, error.strerror or error)
    return Failure(call, path, detail, error.errno or 0, offset)


def refused_call(call, path, error):
    """A call that some kernels, filesystems or policies do not offer; other errors remain
    failures."""
    failure = failed_call(call, path, error)
    failure.fields["unavailable"] = int(error.errno in NOT_OFFERED)
    return failure


def short_call(call, path, offset, expected, received):
    """A call that moved fewer bytes than it was to."""
    detail = "%s at offset %d of %s returned %d of %d bytes" % (call, offset, path, received or 0, expected)
    return Failure(call, path, detail, 0, offset)
