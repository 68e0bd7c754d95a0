# cmake -DROOT=… -DOUTPUT=… -DBUILD=… -P: the digest of the sources of src/privacy and of the build's settings, as a header.
file(GLOB files ${ROOT}/src/privacy/*/*.cpp ${ROOT}/src/privacy/*/*.h ${ROOT}/include/tsdp/privacy/*/*.h ${ROOT}/src/base/clones.h)
set(digests "")
foreach(file ${files})
  file(SHA256 ${file} digest)
  string(APPEND digests ${digest})
endforeach()
string(SHA256 digest "${digests} ${BUILD}")
file(WRITE ${OUTPUT} "#pragma once\n#define TSDP_GAME_SOURCES \"${digest}\"\n")
