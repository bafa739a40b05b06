g.extension extension=r.stream.order
