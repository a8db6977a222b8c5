class TimeoutException(Exception):
    pass
