package params
