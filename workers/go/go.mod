module pagewise

go 1.21
