# As http/http_faults.cmake: the linker leads the client's charges and calls to the kernel to tests/support/faults.cpp.
coir_test(client/client_faults SOURCES ../support/faults.cpp LIBS coir_net TIMEOUT 300)
foreach(function accept4 epoll_create1 epoll_ctl eventfd ${coir_linked_fstat} madvise mmap mprotect open openat poll ${coir_linked_ppoll} pread
        pthread_create recv send sendfile sendmsg syscall ${coir_linked_charge})
  target_link_options(client_faults_test PRIVATE "LINKER:--wrap=${function}")
endforeach()
