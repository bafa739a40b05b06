pkg load nosuchpkg
