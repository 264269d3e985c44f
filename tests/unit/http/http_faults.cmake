# A server whose calls to the kernel and charges to the ledger fail when the test wants it: the linker leads them to
# tests/support/faults.cpp, so that the product holds nothing for it. The last is coir::Account::charge(std::size_t).
coir_test(http/http_faults SOURCES ../support/faults.cpp LIBS coir_net TIMEOUT 400)
foreach(function accept4 epoll_create1 epoll_ctl eventfd ${coir_linked_fstat} madvise mmap mprotect open openat poll ${coir_linked_ppoll} pread preadv2
        pthread_create recv send sendfile sendmsg syscall ${coir_linked_charge})
  target_link_options(http_faults_test PRIVATE "LINKER:--wrap=${function}")
endforeach()
