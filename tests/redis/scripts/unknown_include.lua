--#include Message
return 1
