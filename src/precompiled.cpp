// Carrier of the precompiled headers that targets share (src/CMakeLists.txt).
