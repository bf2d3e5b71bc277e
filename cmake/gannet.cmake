# Compile options and the few functions that every folder uses.

set(GANNET_ISA_AVX2 -mavx2 -mfma -mf16c -mbmi2)
set(GANNET_ISA_AVX512 ${GANNET_ISA_AVX2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vnni)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND GANNET_ISA_AVX512 -Wno-maybe-uninitialized -Wno-uninitialized)   # GCC 12 warns inside its own headers
endif()
set(GANNET_ISA_AMX ${GANNET_ISA_AVX512} -mamx-tile -mamx-int8 -mamx-bf16)

# Options for our own targets; third-party code is built without them.
function(gannet_target_options target)
  target_compile_options(${target} PRIVATE $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wall -Wextra
                         $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local> -Wnon-virtual-dtor -ffp-contract=off
                         -Wno-missing-field-initializers   # designated initialisers rely on the defaults
                         $<$<BOOL:${GANNET_WERROR}>:-Werror>>
                         $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false --expt-relaxed-constexpr -lineinfo
                         -Xcompiler=-Wall,-ffp-contract=off $<$<BOOL:${GANNET_WERROR}>:-Werror=all-warnings>>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)   # false positives on std::string in GCC 12
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE -Wno-shadow)
  endif()
  if(GANNET_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${GANNET_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${GANNET_SANITIZE})
    if(GANNET_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-tsan)   # Boost.Asio's fences, which the sanitizer does not see
    endif()
  endif()
endfunction()

# One static library a folder of src/, named gannet_<folder>, from every .cc below it. Files named *_avx2.cc,
# *_avx512.cc and *_amx.cc get their instruction set, and are called only after a run-time check of the CPU. With
# GANNET_CUDA every .cu is part of it; without, the files in folders named no_cuda stand in.
# A folder may add libraries in src/<folder>/deps.cmake: set(GANNET_DEPS ...) .
set_property(GLOBAL PROPERTY gannet_previous "")
function(gannet_folder folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  if(GANNET_CUDA)
    list(FILTER sources EXCLUDE REGEX "/no_cuda/")
    file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cu)
    list(APPEND sources ${cuda_sources})
  endif()
  get_property(previous GLOBAL PROPERTY gannet_previous)
  set(GANNET_DEPS "")
  if(EXISTS ${PROJECT_SOURCE_DIR}/src/${folder}/deps.cmake)
    include(${PROJECT_SOURCE_DIR}/src/${folder}/deps.cmake)
  endif()
  if(NOT sources)
    return()
  endif()
  foreach(isa avx2 avx512 amx)
    string(TOUPPER ${isa} upper)
    set(matching ${sources})
    list(FILTER matching INCLUDE REGEX "_${isa}\\.cc$")
    if(matching)
      set_source_files_properties(${matching} PROPERTIES COMPILE_OPTIONS "${GANNET_ISA_${upper}}")
    endif()
  endforeach()
  add_library(gannet_${folder} STATIC ${sources})
  gannet_target_options(gannet_${folder})
  if(folder MATCHES "^(kernels|sample)$" AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(gannet_${folder} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O3>)
  endif()
  target_include_directories(gannet_${folder} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(gannet_${folder} PUBLIC ${previous} ${GANNET_DEPS})
  set_property(GLOBAL PROPERTY gannet_previous gannet_${folder})
endfunction()

# One test executable a folder of src/: every tests/<folder>/**_test.cc, registered case by case.
function(gannet_test folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*_test.cc)
  if(NOT sources OR NOT TARGET gannet_${folder})
    return()
  endif()
  add_executable(${folder}_test ${sources})
  gannet_target_options(${folder}_test)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${folder}_test PRIVATE -O1)   # the work that tests do is in the libraries
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")   # false positives on string concatenation in GCC 12, many in tests
    target_compile_options(${folder}_test PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  target_include_directories(${folder}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${folder}_test PRIVATE GANNET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${folder}_test PRIVATE gannet_${folder} GTest::gtest GTest::gtest_main)
  target_precompile_headers(${folder}_test PRIVATE <gtest/gtest.h>)
  add_test(NAME ${folder} COMMAND ${folder}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

# One libFuzzer target: tests/fuzz/<name>_fuzz.cc against the library of `folder`.
function(gannet_fuzz name folder)
  add_executable(${name}_fuzz ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cc)
  gannet_target_options(${name}_fuzz)
  target_compile_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name}_fuzz PRIVATE gannet_${folder})
endfunction()
