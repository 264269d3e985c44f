# As http/http_faults.cmake, for WebSockets.
coir_test(http/sockets/socket_faults SOURCES ../support/faults.cpp LIBS coir_net)
foreach(function accept4 epoll_create1 epoll_ctl eventfd fstat madvise mmap mprotect open openat poll ppoll pread
        pthread_create recv send sendfile sendmsg syscall _ZN4coir7Account6chargeEm)
  target_link_options(socket_faults_test PRIVATE "LINKER:--wrap=${function}")
endforeach()
