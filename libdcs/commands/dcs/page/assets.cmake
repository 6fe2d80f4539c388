# cmake -DFOLDER=... -DOUT=... -P assets.cmake: the files of a folder as a source file of the program.
set(types css "text/css; charset=utf-8" js "text/javascript; charset=utf-8" svg "image/svg+xml")
file(GLOB files ${FOLDER}/*)
set(rows "")
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  string(REGEX REPLACE ".*[.]" "" ending ${name})
  list(FIND types ${ending} at)
  if(at LESS 0)
    message(FATAL_ERROR "${name}: what type is it?")
  endif()
  math(EXPR at "${at} + 1")
  list(GET types ${at} type)
  file(READ ${file} text)
  if(text MATCHES "[)]asset\"")
    message(FATAL_ERROR "${name} holds the end of a raw string")
  endif()
  string(APPEND rows "    {\"/${name}\", \"${type}\", R\"asset(${text})asset\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"commands/dcs/page/assets.h\"

namespace dcs::commands::page {

std::span<const Asset> assets() {
    static constexpr Asset all[] = {
${rows}    };
    return all;
}

}  // namespace dcs::commands::page
")
