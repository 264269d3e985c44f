# coir_mbedtls: TLS from mbedTLS's source, compiled here so that it gets this tree's flags, sanitizers included, and so that
# changing toolchains/mbedtls/config.h rebuilds it. It is one library, with the files that the configuration fills.
coir_cached(coir_mbedtls_dir mbedtls mbedtls COIR_MBEDTLS_DIR)

set(coir_mbedtls_files
  aes aesce aesni asn1parse asn1write base64 bignum bignum_core bignum_mod bignum_mod_raw block_cipher chacha20 chachapoly
  cipher cipher_wrap constant_time ecdh ecdsa ecp ecp_curves gcm hkdf md oid pem pk pk_ecc pk_wrap pkparse pkwrite platform
  platform_util poly1305 psa_crypto psa_crypto_aead psa_crypto_cipher psa_crypto_client psa_crypto_driver_wrappers_no_static
  psa_crypto_ecp psa_crypto_hash psa_crypto_mac psa_crypto_rsa psa_crypto_slot_management psa_util rsa rsa_alt_helpers sha256
  sha512 ssl_ciphersuites ssl_client ssl_msg ssl_ticket ssl_tls ssl_tls12_client ssl_tls12_server ssl_tls13_client
  ssl_tls13_generic ssl_tls13_keys ssl_tls13_server threading x509 x509_create x509_crt x509write x509write_crt)
list(TRANSFORM coir_mbedtls_files REPLACE "(.+)" "${coir_mbedtls_dir}/library/\\1.c")

add_library(coir_mbedtls STATIC ${coir_mbedtls_files})
set_target_properties(coir_mbedtls PROPERTIES EXPORT_NAME mbedtls)
target_include_directories(coir_mbedtls SYSTEM PUBLIC
  $<BUILD_INTERFACE:${coir_mbedtls_dir}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/toolchains/mbedtls>)
target_include_directories(coir_mbedtls SYSTEM PRIVATE "${coir_mbedtls_dir}/library")
target_compile_definitions(coir_mbedtls PUBLIC MBEDTLS_CONFIG_FILE="config.h")
# That file asks coir/config.h for the profile, and whether there are threads.
target_include_directories(coir_mbedtls PUBLIC $<BUILD_INTERFACE:${COIR_CONFIG_DIR}>)
# Patches by a header that is included before one of mbedTLS's files: the header says why.
function(coir_mend file header)
  set_source_files_properties("${coir_mbedtls_dir}/library/${file}.c" PROPERTIES
    COMPILE_OPTIONS "-include;${PROJECT_SOURCE_DIR}/toolchains/mbedtls/${header}.h"
    OBJECT_DEPENDS "${PROJECT_SOURCE_DIR}/toolchains/mbedtls/${header}.h")
endfunction()
coir_mend(ssl_tls12_client tls12_client_pss)
coir_mend(ssl_tls13_generic tls13_certificate_required)
set(COIR_MBEDTLS_OPTIMIZE -Os CACHE STRING "how mbedTLS is optimised in a release build")
target_compile_options(coir_mbedtls PRIVATE -ffunction-sections -fdata-sections -w
  $<$<CONFIG:Release>:${COIR_MBEDTLS_OPTIMIZE}>)
if(COIR_FUZZ)
  target_compile_options(coir_mbedtls PRIVATE -fsanitize=fuzzer-no-link,address)
endif()
