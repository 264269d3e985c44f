# coir_faults_test(<room>/<concept> [MARK ...]) is a test whose calls to the kernel and charges to the ledger fail when
# it wants it: the linker leads them to tests/support/faults.cpp, so that the product holds nothing for it. The last is
# coir::Account::charge(std::size_t). All of them are one program.
function(coir_faults_test concept)
  coir_test(${concept} ${ARGN} PROGRAM faults SOURCES ../support/faults.cpp LIBS coir_net
    WRAP accept4 close connect epoll_create1 epoll_ctl epoll_wait eventfd ${coir_linked_fstat} getsockopt madvise mmap mprotect
      open openat poll ${coir_linked_ppoll} pread preadv2 pthread_create recv recvmsg send sendfile sendmsg setsockopt shutdown
      socket syscall ${coir_linked_charge})
endfunction()
