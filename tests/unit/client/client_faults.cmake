# As http/http_faults.cmake: the linker leads the client's charges and calls to the kernel to tests/support/faults.cpp.
coir_test(client/client_faults SOURCES ../support/faults.cpp LIBS coir_net)
foreach(function accept4 epoll_create1 epoll_ctl eventfd fstat madvise mmap mprotect open openat poll ppoll pread
        pthread_create recv send sendfile sendmsg syscall _ZN4coir7Account6chargeEm)
  target_link_options(client_faults_test PRIVATE "LINKER:--wrap=${function}")
endforeach()
