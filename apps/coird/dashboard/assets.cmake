# The dashboard: its sources, and its style and script, compressed and put into the program as they are sent.
target_sources(coird PRIVATE dashboard/dashboard.cpp dashboard/figures.cpp dashboard/live.cpp dashboard/page.cpp dashboard/past_crashes.cpp dashboard/assets.S)
set(coird_assets "${CMAKE_CURRENT_BINARY_DIR}/dashboard")
file(MAKE_DIRECTORY "${coird_assets}")
foreach(asset style.css script.js)
  # Without indentation and comments that have a line of their own.
  add_custom_command(OUTPUT "${coird_assets}/${asset}.gz"
    COMMAND sed -e "s/^ *//" -e "/^\\/[/*]/d" "${CMAKE_CURRENT_SOURCE_DIR}/dashboard/${asset}" | gzip -9n > "${coird_assets}/${asset}.gz"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/dashboard/${asset}" VERBATIM)
  list(APPEND coird_asset_files "${coird_assets}/${asset}.gz")
endforeach()
set_source_files_properties(dashboard/assets.S PROPERTIES
  OBJECT_DEPENDS "${coird_asset_files}" INCLUDE_DIRECTORIES "${coird_assets}")
file(GLOB coird_dashboard_sources CONFIGURE_DEPENDS dashboard/*.cpp)
coir_small(-Oz ${coird_dashboard_sources})
